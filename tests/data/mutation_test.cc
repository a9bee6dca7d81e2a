// SPDX-License-Identifier: Apache-2.0
// Damaged inputs of every format: each is either read or refused. Under the sanitizers this is the
// fuzz test of the readers.
#include <algorithm>

#include "base/tfrecord.h"
#include "core/random.h"
#include "data/record_reader.h"
#include "data/token_shard.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

// Flips, removes, repeats or overwrites a few bytes.
std::string Mutate(std::string bytes, uint64_t number) {
  const RandomKey key = DeriveKey(1, "mutation", number);
  const int changes = 1 + static_cast<int>(RandomAt(key, 0)[0] % 4);
  for (int change = 1; change <= changes && !bytes.empty(); ++change) {
    const RandomBits bits = RandomAt(key, change);
    const size_t at = bits[0] % bytes.size();
    const size_t count = std::min<size_t>(1 + bits[1] % 16, bytes.size() - at);
    switch (bits[2] % 5) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << bits[3] % 8));
        break;
      case 1:
        bytes.erase(at, count);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, count));
        break;
      case 3:
        std::fill_n(bytes.begin() + at, count, static_cast<char>(bits[3]));
        break;
      default:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

struct Outcome {
  int read = 0, refused = 0;
};

void ReadOrRefuse(const Path& path, Outcome* outcome) {
  try {
    const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, "text");
    for (Record record; reader->Next(&record);) {
      if (record.fault == RecordFault::kNone) {
        ASSERT_EQ(CheckText(record.text), RecordFault::kNone);
      }
    }
    ++outcome->read;
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), ExitCode::kData) << error.what();
    ++outcome->refused;
  }
}

TEST(Mutation, RecordFilesAreReadOrRefused) {
  const Path directory = ScratchDirectory("mutated");
  std::string json, text, frames, table = "id,text\n";
  for (int i = 0; i < 8; ++i) {
    const std::string words = fmt::format("döcument {} with \\u00e9 and \\\"quotes\\\"", i);
    json += fmt::format("{{\"url\":[1,2.5e3,null],\"text\":\"{}\"}}\n", words);
    text += words + "\n";
    table += fmt::format("{},\"{}, \"\"quoted\"\"\n\"\r\n", i, words);
    frames += FrameTfRecord(TfExample("text", words));
  }
  const std::pair<const char*, std::string> seeds[] = {
      {"a.json", json},       {"a.txt", text},
      {"a.tfrecord", frames}, {"a.json.gz", Gzip(json) + Gzip(json)},
      {"a.csv", table},       {"a.tsv", table},
      {"a.bin", json}};
  for (const auto& [name, seed] : seeds) {
    Outcome outcome;
    for (uint64_t number = 0; number < 400; ++number) {
      ReadOrRefuse(WriteScratch(directory / name, Mutate(seed, number)), &outcome);
    }
    EXPECT_EQ(outcome.read + outcome.refused, 400) << name;
    if (name == std::string_view("a.tfrecord")) {
      EXPECT_GT(outcome.refused, 350);
    }
  }
}

TEST(Mutation, TokenShardsAreSoundOrRefusedEvenUnverified) {
  const Path directory = ScratchDirectory("mutated_shards");
  const Path good = directory / "good.tokens", bad = directory / "bad.tokens";
  TokenShardWriter writer(good, 100);
  for (int32_t i = 0; i < 20; ++i) writer.AddDocument(std::vector<int32_t>(i + 1, i));
  ShardFacts facts;
  writer.Commit(&facts);
  const std::string seed = ReadWholeFile(good);
  for (uint64_t number = 0; number < 2000; ++number) {
    const std::string mutated = Mutate(seed, number);
    if (mutated == seed) continue;
    WriteScratch(bad, mutated);
    EXPECT_THROW(TokenShard{bad}, Error);
    try {
      const TokenShard shard(bad, /*verify=*/false);
      std::vector<int32_t> tokens(shard.token_count());
      shard.CopyTokens(0, tokens);
      for (int64_t i = 0; i < shard.document_count(); ++i) {
        ASSERT_GT(shard.DocumentLength(i), 0);
        ASSERT_LE(shard.DocumentBegin(i) + shard.DocumentLength(i), shard.token_count());
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ExitCode::kData) << error.what();
    }
  }
}

}  // namespace
}  // namespace syntra
