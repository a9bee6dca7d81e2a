// SPDX-License-Identifier: Apache-2.0
#include "data/pattern.h"

#include <thread>

#include "tests/base/error_of.h"
#include "tests/base/refused_calls.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

std::vector<std::string> Names(const std::vector<Path>& paths) {
  std::vector<std::string> names;
  for (const Path& path : paths) names.push_back(path.filename().string());
  return names;
}

std::vector<Path> Expand(std::vector<std::string> patterns) { return ExpandPatterns(patterns); }

TEST(Pattern, ExpandsInOrderWithoutRepeats) {
  const Path directory = ScratchDirectory("patterns");
  for (const char* name : {"b.txt", "a.txt", "c.json"}) WriteScratch(directory / name, "x\n");
  const std::string base = directory.string();
  EXPECT_EQ(Names(Expand({base + "/c.json", base + "/*.txt", base + "/a.txt"})),
            (std::vector<std::string>{"c.json", "a.txt", "b.txt"}));
}

TEST(Pattern, NothingMatchedIsAnError) {
  const std::string pattern = ScratchDirectory("no_match").string() + "/*.json.gz";
  EXPECT_EQ(DataErrorOf([&] { Expand({pattern}); }),
            "no file matches " + pattern +
                "; check the path, and quote patterns so that the shell does not expand them");
}

// Where a directory cannot be read to its end, files would be missing without a word.
TEST(Pattern, ADirectoryThatFailsIsNotAtItsEnd) {
  const Path directory = ScratchDirectory("fails");
  WriteScratch(directory / "a.txt", "x\n");
  const std::string pattern = directory.string() + "/*.txt";
  std::thread([&] {
    ASSERT_TRUE(RefuseCalls({SYS_getdents64}));
    EXPECT_EQ(ErrorOf([&] { Expand({pattern}); }, ExitCode::kResources),
              "cannot list the files that match " + pattern + ": Input/output error");
  }).join();
}

// Browsers call the second download of a file "a [1].txt" or so.
TEST(Pattern, AFileMayHaveTheNameOfAPattern) {
  const Path directory = ScratchDirectory("brackets");
  const std::string base = directory.string();
  for (const char* name : {"a [1].txt", "a 1.txt", "a*.txt", "b.txt"}) {
    WriteScratch(directory / name, "x\n");
  }
  EXPECT_EQ(Names(Expand({base + "/a [1].txt"})), (std::vector<std::string>{"a [1].txt"}));
  EXPECT_EQ(Names(Expand({base + "/a*.txt"})), (std::vector<std::string>{"a*.txt"}));
  EXPECT_FALSE(IsPattern(base + "/a [1].txt"));
  EXPECT_TRUE(IsPattern(base + "/[ab].txt"));
  EXPECT_EQ(Names(Expand({base + "/[ab].txt"})), (std::vector<std::string>{"b.txt"}));
}

TEST(Pattern, DirectoriesAreNamed) {
  const Path directory = ScratchDirectory("folders");
  WriteScratch(directory / "a.txt", "x\n");
  CreateDirectories(directory / "more");
  const std::string base = directory.string();
  EXPECT_EQ(DataErrorOf([&] { Expand({base + "/*"}); }),
            fmt::format("{0}/* matches {0}/more, which is a directory; let the pattern match files "
                        "only, such as *.jsonl",
                        base));
}

TEST(Pattern, MissingShardsAreNamed) {
  const Path directory = ScratchDirectory("missing");
  const std::string base = directory.string();
  for (const int number : {0, 1, 3}) {
    WriteScratch(directory / fmt::format("c4-train.{:05}-of-00005.json.gz", number), "");
    WriteScratch(directory / fmt::format("c4-train.tfrecord-{:05}-of-00004", number), "");
  }
  EXPECT_EQ(DataErrorOf([&] { Expand({base + "/c4-train.0*.json.gz"}); }),
            fmt::format("2 of the 5 shards that {0}/c4-train.0*.json.gz asks for are missing: "
                        "{0}/c4-train.00002-of-00005.json.gz, {0}/c4-train.00004-of-00005.json.gz",
                        base));
  EXPECT_NE(DataErrorOf([&] {
              Expand({base + "/c4-train.tfrecord-*"});
            }).find("c4-train.tfrecord-00002-of-00004"),
            std::string::npos);
  // A part of the set, asked for as such, is whole.
  EXPECT_EQ(Expand({base + "/c4-train.0000[01]-of-00005.json.gz"}).size(), 2u);
  EXPECT_EQ(Expand({base + "/c4-train.00003-of-00005.json.gz"}).size(), 1u);
  // A number beyond the set is a mistake.
  WriteScratch(directory / "c4-train.00007-of-00005.json.gz", "");
  EXPECT_NE(DataErrorOf([&] {
              Expand({base + "/c4-train.0*.json.gz"});
            }).find("c4-train.00007-of-00005.json.gz has a number that a set of 5 shards"),
            std::string::npos);
  // More are missing than a message should list.
  WriteScratch(directory / "big-00000-of-01024.txt", "");
  const std::string message = DataErrorOf([&] { Expand({base + "/big-*"}); });
  EXPECT_TRUE(message.starts_with("1023 of the 1024 shards")) << message;
  EXPECT_TRUE(message.ends_with("big-00005-of-01024.txt, ...")) << message;
}

// Only sets of five digits are known; the first of these must not be taken for one of twelve.
TEST(Pattern, OtherNumbersAreNoShards) {
  const Path directory = ScratchDirectory("six_digits");
  for (int number = 0; number < 128; ++number) {
    WriteScratch(directory / fmt::format("c-{:06}-of-000128.txt", number), "x");
  }
  EXPECT_EQ(Expand({directory.string() + "/c-*"}).size(), 128u);
}

// Each shard then has a name that does not follow from those of the others.
TEST(Pattern, ShardsMayHaveFingerprints) {
  const Path directory = ScratchDirectory("fingerprints");
  const std::string base = directory.string();
  const Path first = WriteScratch(directory / "train-00000-of-00003-a09b74b3ef9c3b56.parquet", "x");
  WriteScratch(directory / "train-00001-of-00003-7b1f0d2c4e5a6978.parquet", "x");
  EXPECT_EQ(DataErrorOf([&] { Expand({base + "/train-*"}); }),
            fmt::format("1 of the 3 shards that {0}/train-* asks for are missing: "
                        "{0}/train-00002-of-00003-*.parquet",
                        base));
  EXPECT_EQ(Expand({base + "/train-0000[01]-*"}).size(), 2u);
  EXPECT_EQ(Expand({base + "/train-*-a09b74b3ef9c3b56.parquet"}), std::vector{first});
  WriteScratch(directory / "train-00002-of-00003-0123456789abcdef.parquet", "x");
  EXPECT_EQ(Expand({base + "/train-*"}).size(), 3u);
  // What is no fingerprint tells sets apart.
  for (const char* name : {"b-00000-of-00002-raw.txt", "b-00001-of-00002-clean.txt"}) {
    WriteScratch(directory / name, "x");
  }
  EXPECT_NE(DataErrorOf([&] { Expand({base + "/b-*"}); }).find("b-00000-of-00002-clean.txt"),
            std::string::npos);
}

}  // namespace
}  // namespace syntra
