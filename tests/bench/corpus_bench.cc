// SPDX-License-Identifier: Apache-2.0
// What a run that starts waits for with a large prepared corpus: opening it, and the first batches,
// whose segments lie anywhere in it. Makes a corpus of random tokens with documents as long as
// C4's, and prints lines of JSON.
//
//   corpus_bench --tokenizer spiece.model --folder DIR --million-tokens 5000
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "configs/schema/config.pb.h"
#include "core/random.h"
#include "data/corpus_source.h"
#include "data/training_data.h"
#include "tests/bench/timed_lines.h"

namespace syntra {
namespace {

constexpr int64_t kShardTokens = 200'000'000;
constexpr uint32_t kMeanDocument = 480;  // tokens, as in C4
constexpr int64_t kBatchRows = 128;
constexpr int64_t kBatches = 20;

struct Options {
  Path tokenizer, folder;
  int64_t million_tokens = 1000;
};

// From the page cache, so that the next reader must read from the disk.
void Evict(const Path& directory) {
  for (const Path& path : ListDirectory(directory)) {
    const File file = File::OpenForRead(path);
    posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

// What this process has had read from disks.
double ReadMegabytes() {
  std::ifstream io("/proc/self/io");
  for (std::string name, value; io >> name >> value;) {
    if (name == "read_bytes:") return std::stod(value) / 1e6;
  }
  return 0;
}

void MakeShard(const Path& source, const Path& shard, const Tokenizer& tokenizer) {
  if (Exists(shard)) return;
  const std::string text = source.filename().string();
  ReplaceFileDurably(source, text);
  TokenShardWriter writer(shard, tokenizer.vocabulary_size());
  const RandomKey key = DeriveKey(1, text);
  std::vector<int32_t> document;
  for (int64_t made = 0, i = 0; made < kShardTokens; made += std::ssize(document), ++i) {
    const auto random = RandomAt(key, i);
    document.resize(1 + UniformBelow(random[0], 2 * kMeanDocument));
    for (size_t j = 0; j < document.size(); ++j) {
      document[j] = static_cast<int32_t>((random[1] + j * random[2]) % 32000);
    }
    writer.AddDocument(document);
  }
  ShardFacts facts{.source_bytes = text.size(),
                   .source = DigestOf(text),
                   .tokenizer = tokenizer.digest(),
                   .settings = SettingsDigest("text", tokenizer)};
  writer.Commit(&facts);
}

template <typename Body>
void Time(const std::string& name, const Body& body) {
  const auto start = Clock::now();
  const double used = ProcessorSeconds(), read = ReadMegabytes();
  body();
  PrintLine({{"measured", name},
             {"seconds", SecondsSince(start)},
             {"processor_seconds", ProcessorSeconds() - used},
             {"read_megabytes", ReadMegabytes() - read}});
}

void Run(const Options& options) {
  const Tokenizer tokenizer(options.tokenizer, 100);
  const Path train = options.folder / "prepared" / kTrainSplit;
  CreateDirectories(options.folder / "text");
  CreateDirectories(train);
  DataConfig config;
  for (int64_t i = 0; i * kShardTokens < options.million_tokens * 1'000'000; ++i) {
    const std::string name = fmt::format("part-{:05}.txt", i);
    config.add_train((options.folder / "text" / name).string());
    MakeShard(config.train(static_cast<int>(i)), train / (name + ".tokens"), tokenizer);
  }
  PreparedCorpus prepared;
  Time("compare with the corpus files", [&] {
    prepared = PrepareCorpus(TrainingPreparation(config, train.parent_path()), tokenizer);
  });
  const auto open = [&] {
    return TrainingData::Open(config, SeparateRows(), tokenizer, prepared, /*seed=*/1);
  };
  std::optional<TrainingData> data;
  Evict(train);
  for (const char* state : {"not in memory", "in memory"}) {
    data.reset();
    Time(fmt::format("open, {}", state), [&] { data.emplace(open()); });
  }
  Evict(train);
  for (const char* state : {"not in memory", "in memory"}) {
    Time(fmt::format("{} batches, {}", kBatches, state), [&] {
      for (int64_t step = 0; step < kBatches; ++step) data->Get(step, kBatchRows, 0, kBatchRows);
    });
  }
  PrintLine(PeakMemory());
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  CLI::App app("The start of a run with a large corpus.");
  syntra::Options options;
  app.add_option("--tokenizer", options.tokenizer)->required();
  app.add_option("--folder", options.folder, "where the corpus is made, and stays")->required();
  app.add_option("--million-tokens", options.million_tokens);
  CLI11_PARSE(app, argc, argv);
  return syntra::EndedBy([&] { syntra::Run(options); });
}
