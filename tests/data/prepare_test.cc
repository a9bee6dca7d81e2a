// SPDX-License-Identifier: Apache-2.0
#include "data/prepare.h"

#include "core/thread.h"
#include "tests/base/error_of.h"
#include "tests/data/corpus_files.h"
#include "tests/data/prepared_corpus.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

std::string AllBytes(const Path& directory) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  std::string bytes;
  for (const Path& file : files) bytes += file.filename().string() + ReadWholeFile(file);
  return bytes;
}

TEST(Prepare, SecondTimeIsNoWork) {
  const PrepareOptions options = OptionsFor(WriteCorpus("twice", 3));
  const PrepareResult first = PrepareCorpus(options, T5());
  EXPECT_EQ(first.built, 3);
  EXPECT_EQ(first.index.documents(), 120);
  const std::string bytes = AllBytes(options.directory);
  const PrepareResult second = PrepareCorpus(options, T5());
  EXPECT_EQ(second.built, 0);
  EXPECT_EQ(second.kept, 3);
  EXPECT_EQ(AllBytes(options.directory), bytes);
  EXPECT_EQ(second.index.DataDigest(), first.index.DataDigest());
}

// What is read of shards when they are opened is what they have besides tokens.
TEST(Prepare, AnIndexTellsWhatOpeningReads) {
  const PrepareOptions options = OptionsFor(WriteCorpus("opened", 3));
  const CorpusIndex index = PrepareCorpus(options, T5()).index;
  double bytes = 0;
  for (const IndexEntry& entry : index.shards) {
    bytes += static_cast<double>(std::filesystem::file_size(options.directory / entry.file));
  }
  constexpr double kHeader = 512;  // and padding, of each shard
  const double others = bytes - 2.0 * static_cast<double>(index.tokens());
  EXPECT_LE(index.opened_bytes(), others);
  EXPECT_GE(index.opened_bytes(), others - kHeader * 3);
}

TEST(Prepare, ChangesAreMadeAgain) {
  const Path corpus = WriteCorpus("changed", 3);
  PrepareOptions options = OptionsFor(corpus);
  PrepareCorpus(options, T5());
  WriteScratch(corpus / "c-00001-of-00003.json.gz", Gzip("{\"text\":\"new words\"}\n"));
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  // Damage to a finished shard.
  const Path shard = options.directory / "c-00002-of-00003.json.gz.tokens";
  std::string bytes = ReadWholeFile(shard);
  bytes[70] ^= 1;
  WriteScratch(shard, bytes);
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  // Another vocabulary, and with it another settings digest.
  const Tokenizer other(SamplePath("spiece.model"), 64);
  EXPECT_EQ(PrepareCorpus(options, other).built, 3);
}

// The shards of a run that continues give way only to shards that say the same.
TEST(Prepare, AShardThatMustKeepItsContentDoes) {
  const Path corpus = WriteCorpus("kept", 1);
  PrepareOptions options = OptionsFor(corpus);
  PrepareCorpus(options, T5());
  options.keeps_content = true;
  const Path source = corpus / "c-00000-of-00001.json.gz";
  const Path shard = options.directory / "c-00000-of-00001.json.gz.tokens";
  const std::string bytes = ReadWholeFile(shard), zipped = ReadWholeFile(source);
  WriteScratch(source, Gzip("{\"text\":\"new words\"}\n"));
  const std::string error = ErrorOf([&] { PrepareCorpus(options, T5()); }, ExitCode::kCheckpoint);
  EXPECT_NE(error.find("no longer contains the text that"), std::string::npos);
  EXPECT_EQ(ReadWholeFile(shard), bytes);
  EXPECT_FALSE(std::filesystem::exists(shard.string() + ".again"));
  // As a process leaves it that is killed.
  WriteScratch(shard.string() + ".again", "part");
  WriteScratch(source, zipped);
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 0);
  EXPECT_FALSE(std::filesystem::exists(shard.string() + ".again"));
  // Two members of gzip in the place of one: other bytes, the same text.
  WriteScratch(source, zipped + Gzip(""));
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  EXPECT_EQ(ReadShardSummary(shard).facts.tokens, PrepareCorpus(options, T5()).index.tokens());
}

// Who only looks replaces nothing, not even where sizes agree; what is damaged is of no use to a
// run.
TEST(Prepare, AShardThatIsOnlyLookedAtStays) {
  const Path corpus = WriteCorpus("looked_at", 2);
  PrepareOptions options = OptionsFor(corpus);
  PrepareCorpus(options, T5());
  const Path source = corpus / "c-00001-of-00002.json.gz";
  std::string zipped = ReadWholeFile(source);
  zipped[4] ^= 1;  // the time in gzip's header
  WriteScratch(source, zipped);
  options.replaces_shards = false;
  const Path shard = options.directory / "c-00001-of-00002.json.gz.tokens";
  const std::string bytes = ReadWholeFile(shard);
  const std::string error = ErrorOf([&] { PrepareCorpus(options, T5()); }, ExitCode::kConfig);
  EXPECT_NE(error.find("was made from other bytes"), std::string::npos) << error;
  EXPECT_NE(error.find("--set data.prepared=DIRECTORY"), std::string::npos) << error;
  EXPECT_EQ(ReadWholeFile(shard), bytes);
  const Tokenizer other(SamplePath("spiece.model"), 64);
  ErrorOf([&] { PrepareCorpus(options, other); }, ExitCode::kConfig);
  WriteScratch(shard, "part");
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
}

// A download that goes on. A change of the time alone does not matter.
TEST(Prepare, AFileThatChangesMeanwhileIsNotTaken) {
  for (const bool grows : {false, true}) {
    const Path corpus = ScratchDirectory("growing") / "corpus";
    CreateDirectories(corpus);
    const Path source = WriteScratch(corpus / "c-0.txt", "one line\n");
    PrepareOptions options = OptionsFor(corpus);
    bool changed = false;
    options.on_progress = [&](const PrepareProgress& progress) {
      if (progress.documents == 0 || std::exchange(changed, true)) return;
      if (grows) WriteScratch(source, "one line\ntwo lines\n");
      std::filesystem::last_write_time(
          source, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
    };
    if (!grows) {
      EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
      continue;
    }
    EXPECT_NE(DataErrorOf([&] { PrepareCorpus(options, T5()); }).find("changed while it was read"),
              std::string::npos);
    options.on_progress = {};
    EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  }
}

TEST(Prepare, AnIndexHoldsTheLargestFiles) {
  const Path directory = ScratchDirectory("large");
  const CorpusIndex index{.tokenizer = "t",
                          .settings = "s",
                          .shards = {{.file = "a.tokens",
                                      .source = "a.jsonl",
                                      .documents = int64_t{1} << 42,
                                      .tokens = int64_t{1} << 45,
                                      .source_bytes = int64_t{1} << 47,
                                      .digest = "d"}}};
  WriteIndex(directory, index);
  EXPECT_TRUE(ReadIndex(directory) == index);
}

using Time = std::filesystem::file_time_type;

void Rewrite(const Path& path, const std::string& content, Time time) {
  WriteScratch(path, content);
  std::filesystem::last_write_time(path, time);
}

// A file is known by its size and the time of its last change, if that is not too recent to tell.
TEST(Prepare, WhatHasNotChangedIsNotRead) {
  const Path corpus = ScratchDirectory("unchanged") / "corpus";
  CreateDirectories(corpus);
  const Path source = corpus / "c-0.txt";
  const PrepareOptions options = OptionsFor(corpus);
  const Path shard = options.directory / "c-0.txt.tokens", index = options.directory / "INDEX.json";
  const Time now = std::filesystem::file_time_type::clock::now();
  const Time before = now - std::chrono::hours(1);
  Rewrite(source, "one way\n", before);
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  for (const Path& path : {shard, index}) std::filesystem::last_write_time(path, before);
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
  EXPECT_NE(std::filesystem::last_write_time(index), before);

  // Changes that cannot be seen are not; neither is the index written again.
  std::string bytes = ReadWholeFile(shard);
  bytes[70] ^= 1;
  Rewrite(source, "two way\n", before);
  Rewrite(shard, bytes, before);
  std::filesystem::last_write_time(index, before);
  const PrepareResult unread = PrepareCorpus(options, T5());
  EXPECT_EQ(unread.kept, 1);
  EXPECT_EQ(unread.index, ReadIndex(options.directory));
  EXPECT_EQ(std::filesystem::last_write_time(index), before);
  // A reader of the shard finds the damage and says what to do.
  const auto read = [&] { TokenShard(shard, T5().vocabulary_size()).Verify(); };
  const std::string damage = DataErrorOf(read);
  EXPECT_NE(damage.find("remove it and prepare the corpus again"), std::string::npos) << damage;
  try {
    read();
  } catch (const ShardError& error) {  // whoever makes it again does not say so
    EXPECT_EQ(error.problem(),
              shard.string() + ": damaged near byte 0: the bytes do not match their checksum");
  }
  PrepareOptions all = options;
  all.reads_everything = true;
  EXPECT_EQ(PrepareCorpus(all, T5()).built, 1);
  EXPECT_EQ(PrepareCorpus(all, T5()).kept, 1);

  // Any other time, size, name or policy is looked at.
  for (const Path& path : {shard, source}) std::filesystem::last_write_time(path, before);
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
  Rewrite(source, "ten way\n", before + std::chrono::seconds(1));
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  std::filesystem::last_write_time(shard, before);
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
  Rewrite(source, "ten ways\n", before + std::chrono::seconds(1));
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
}

// Nor is a shard that was just made, however large it is.
TEST(Prepare, AFreshShardIsNotRead) {
  const Path corpus = ScratchDirectory("fresh_shard") / "corpus";
  CreateDirectories(corpus);
  PrepareOptions options = OptionsFor(corpus);
  Rewrite(corpus / "c-0.txt", "one way\n", Time::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  options.on_progress = [](const PrepareProgress& progress) {
    EXPECT_EQ(progress.compared_blocks, 0);
  };
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
}

TEST(Prepare, AFileThatIsGoneIsNamed) {
  const Path corpus = ScratchDirectory("gone") / "corpus";
  CreateDirectories(corpus);
  const PrepareOptions options = OptionsFor(corpus);
  const Path source = WriteScratch(corpus / "c-0.txt", "one way\n");
  PrepareCorpus(options, T5());
  std::filesystem::remove(source);
  std::filesystem::create_symlink("nowhere", source);
  const std::string error = DataErrorOf([&] { PrepareCorpus(options, T5()); });
  EXPECT_EQ(error, "cannot read " + source.string() + ": No such file or directory");
}

// They had no checksums of their blocks. A run that was trained on them continues.
TEST(Prepare, ShardsOfTheFirstVersionAreMadeAgain) {
  const Path corpus = ScratchDirectory("first_version") / "corpus";
  CreateDirectories(corpus);
  PrepareOptions options = OptionsFor(corpus);
  WriteScratch(corpus / "c-0.txt", "one way\n");
  const CorpusIndex made = PrepareCorpus(options, T5()).index;
  const Path shard = options.directory / made.shards[0].file;
  const std::string bytes = ReadWholeFile(shard);
  constexpr size_t kAdded = sizeof(Digest) + 8 + 32;  // content, a checksum, the seal
  WriteScratch(shard, bytes.substr(0, bytes.size() - kAdded));
  options.keeps_content = true;
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  EXPECT_EQ(ReadWholeFile(shard), bytes);
}

// Content written in the same tick of the clock has the same time.
TEST(Prepare, FreshTimesAreNotTrusted) {
  const Path corpus = ScratchDirectory("fresh") / "corpus";
  CreateDirectories(corpus);
  const PrepareOptions options = OptionsFor(corpus);
  const Path source = WriteScratch(corpus / "c-0.txt", "one way\n");
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  const Path shard = options.directory / "c-0.txt.tokens";
  std::filesystem::last_write_time(shard,
                                   std::filesystem::last_write_time(shard) - std::chrono::hours(1));
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
  Rewrite(source, "two way\n", std::filesystem::last_write_time(source));
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
}

TEST(Prepare, ThreadsDoNotChangeTheShards) {
  const Path corpus = ScratchDirectory("threads") / "corpus";
  CreateDirectories(corpus);
  std::string text;
  for (int i = 0; i < 2500; ++i) {
    text += fmt::format("{{\"text\":\"{}\"}}\n",
                        i % 7 == 0 ? "" : fmt::format("word {} of many {}", i, i * i));
    if (i == 1234) text += "{\"text\":null}\n";
  }
  // More than a block at once.
  std::string words;
  while (words.size() < size_t{5} << 20) words += "many words ";
  text += "{\"text\":\"" + words + "\"}\n{\"text\":\"the end\"}\n";
  WriteScratch(corpus / "c-0.json", text);
  std::vector<std::string> shards;
  const int threads = ThreadCount();
  for (const int count : {1, 2, 3, 7}) {
    PrepareOptions options = OptionsFor(corpus);
    options.directory = corpus.parent_path() / std::to_string(count);
    SetThreadCount(count);
    // A tokenizer that has seen nothing yet.
    const Tokenizer tokenizer(SamplePath("spiece.model"), 100);
    const PrepareResult result = PrepareCorpus(options, tokenizer);
    EXPECT_EQ(result.index.documents() + result.index.empty_documents(), 2502);
    EXPECT_EQ(result.index.bad_records(), 1);
    EXPECT_TRUE(tokenizer.HasOwnEncoder());
    shards.push_back(ReadWholeFile(options.directory / "c-0.json.tokens"));
    EXPECT_EQ(shards.back(), shards.front()) << count << " threads";
  }
  SetThreadCount(threads);
}

TEST(Prepare, SampleHasItsCounts) {
  PrepareOptions options{.patterns = {SamplePath("c4-*.json.gz").string()},
                         .directory = ScratchDirectory("sample_counts")};
  int64_t reports = 0;
  options.on_progress = [&](const PrepareProgress& progress) {
    ++reports;
    EXPECT_EQ(progress.shards_total, 2);
  };
  const PrepareResult result = PrepareCorpus(options, T5());
  EXPECT_EQ(result.index.documents(), 1200);
  EXPECT_EQ(result.index.bad_records(), 0);
  EXPECT_GE(reports, 2);
}

TEST(Prepare, BadRecordsFollowThePolicy) {
  const Path corpus = WriteCorpus("bad_records", 1);
  const Path file = corpus / "c-00000-of-00001.json.gz";
  std::string text = "{\"text\":\"good\"}\n{\"text\":null}\n{\"text\":\"\"}\n";
  for (int i = 0; i < 7; ++i) text += "{\"text\":\"more\"}\n";
  WriteScratch(file, Gzip(text));
  PrepareOptions options = OptionsFor(corpus);
  const PrepareResult lax = PrepareCorpus(options, T5());
  EXPECT_EQ(lax.index.documents(), 8);
  EXPECT_EQ(lax.index.bad_records(), 1);
  EXPECT_EQ(lax.index.empty_documents(), 1);
  // The shard that the lax run made does not pass under the strict policy.
  options.on_bad_record.fail = true;
  EXPECT_TRUE(
      DataErrorOf([&] {
        PrepareCorpus(options, T5());
      }).starts_with(file.string() + ": byte 16, line 2: the field of data.text_field is null"));
  options.on_bad_record = {.max_fraction = 0};
  DataErrorOf([&] { PrepareCorpus(options, T5()); });
  // Nor does one that the index knows, and that is not read again.
  options.on_bad_record = {};
  const Time before = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const Path& path : {file, options.directory / "c-00000-of-00001.json.gz.tokens"}) {
    std::filesystem::last_write_time(path, before);
  }
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
  options.on_bad_record.fail = true;
  DataErrorOf([&] { PrepareCorpus(options, T5()); });
}

TEST(Prepare, BadShardsAlwaysFail) {
  const Path corpus = WriteCorpus("bad_shard", 2);
  const Path file = corpus / "c-00001-of-00002.json.gz";
  const std::string whole = ReadWholeFile(file);
  WriteScratch(file, whole.substr(0, whole.size() - 5));
  const PrepareOptions options = OptionsFor(corpus);
  const std::string message = DataErrorOf([&] { PrepareCorpus(options, T5()); });
  EXPECT_NE(message.find("gzip data ends early"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(options.directory / "INDEX.json"));
  EXPECT_FALSE(std::filesystem::exists(options.directory / "c-00001-of-00002.json.gz.tokens"));
  WriteScratch(file, whole);
  const PrepareResult repaired = PrepareCorpus(options, T5());
  EXPECT_EQ(repaired.kept, 1);
  EXPECT_EQ(repaired.built, 1);
}

TEST(Prepare, ACorpusWithoutDocumentsFails) {
  const Path corpus = WriteCorpus("no_documents", 1);
  WriteScratch(corpus / "c-00000-of-00001.json.gz", Gzip(""));
  EXPECT_EQ(DataErrorOf([&] { PrepareCorpus(OptionsFor(corpus), T5()); }),
            "data.train: no document in " + (corpus / "c-00000-of-00001.json.gz").string());
  WriteScratch(corpus / "c-more.json.gz", Gzip(""));
  EXPECT_TRUE(DataErrorOf([&] {
                PrepareCorpus(OptionsFor(corpus), T5());
              }).ends_with("c-00000-of-00001.json.gz and 1 other file"));
}

TEST(Prepare, EqualNamesAreAnError) {
  const Path corpus = WriteCorpus("same_names", 1);
  CreateDirectories(corpus / "x");
  WriteScratch(corpus / "x/c-00000-of-00001.json.gz", Gzip("{\"text\":\"a\"}\n"));
  PrepareOptions options = OptionsFor(corpus);
  options.patterns.push_back((corpus / "x/*").string());
  options.field = "data.validation";
  const std::string error = DataErrorOf([&] { PrepareCorpus(options, T5()); });
  EXPECT_NE(error.find("have the same name"), std::string::npos) << error;
  EXPECT_TRUE(error.ends_with(
      "rename one of them, or let data.validation name a link to it under another name"))
      << error;
}

// An index could not hold such a name, and a run with it could not continue.
TEST(Prepare, ANameThatIsNotUtf8IsAnError) {
  const Path corpus = WriteCorpus("latin_name", 1);
  const Path source = WriteScratch(corpus / "c-caf\xe9.txt", "some words\n");
  EXPECT_EQ(DataErrorOf([&] { PrepareCorpus(OptionsFor(corpus), T5()); }),
            "the name of " + source.string() + " is not UTF-8; rename the file");
}

}  // namespace
}  // namespace syntra
