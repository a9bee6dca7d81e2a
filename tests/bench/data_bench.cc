// SPDX-License-Identifier: Apache-2.0
// The data pipeline on one thread: the next json.gz file of the list, once a line of standard
// input. Prints a line of JSON once it is ready, one with the processor time of each file, and the
// peak memory at the end. tests/bench/data runs it.
//
//   data_bench --operation encode --tokenizer spiece.model a.json.gz b.json.gz
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "configs/schema/config.pb.h"
#include "core/thread.h"
#include "data/normalizer.h"
#include "data/record_reader.h"
#include "data/segmenter.h"
#include "data/tokenizer.h"
#include "data/tokenizer_model.pb.h"
#include "data/training_data.h"
#include "tests/bench/timed_lines.h"

namespace syntra {
namespace {

constexpr int64_t kBatchRows = 32;

struct Options {
  std::string operation;
  Path tokenizer, scratch = std::filesystem::temp_directory_path();
  std::vector<std::string> files;
};

// What a file came to.
struct Outcome {
  double seconds = 0;
  int64_t ids = 0;
};

class Pipeline {
 public:
  explicit Pipeline(const Options& options)
      : tokenizer_(options.tokenizer, 100),
        folder_(options.scratch / fmt::format("syntra_data_bench-{}", getpid())) {
    tokenizer::ModelFile model;
    SYNTRA_CHECK(model.ParseFromString(tokenizer_.content()));
    normalizer_.emplace(model);
    segmenter_.emplace(std::make_shared<const PieceTable>(model));
  }
  ~Pipeline() { RemoveAll(folder_); }

  Outcome Encode(const Path& file) {
    return OfTexts(file, [&](const std::string& text) { tokenizer_.Encode(text, &ids_); });
  }

  // What the encoder does with words that it has not cached, for whole texts.
  Outcome EncodeWithoutCache(const Path& file) {
    return OfTexts(file, [&](const std::string& text) {
      float sum = 0;
      ids_.clear();
      normalizer_->Normalize(text, &normal_);
      segmenter_->Segment(normal_, &sum, &ids_);
    });
  }

  Outcome EncodeByLibrary(const Path& file) {
    return OfTexts(file, [&](const std::string& text) { tokenizer_.EncodePlainly(text, &ids_); });
  }

  // Reading and parsing alone; the ids are bytes.
  Outcome Read(const Path& file) {
    const double begin = ProcessorSeconds();
    Outcome outcome;
    const std::unique_ptr<RecordReader> reader = OpenRecordReader(file, "text");
    for (Record record; reader->Next(&record);) outcome.ids += std::ssize(record.text);
    outcome.seconds = ProcessorSeconds() - begin;
    return outcome;
  }

  Outcome Prepare(const Path& file) {
    const double begin = ProcessorSeconds();
    const int64_t ids = PrepareShard(file).index.tokens();
    return {ProcessorSeconds() - begin, ids};
  }

  // Every row of one epoch of the file's shard, which is prepared before.
  Outcome MakeBatches(const Path& file) {
    const PreparedCorpus prepared = PrepareShard(file);
    const double begin = ProcessorSeconds();
    const TrainingData data =
        TrainingData::Open(ConfigOf(file), SeparateRows(), tokenizer_, prepared, /*seed=*/1);
    const int64_t batches = data.RowsInEpoch(0) / kBatchRows;
    for (int64_t step = 0; step < batches; ++step) data.Get(step, kBatchRows, 0, kBatchRows);
    return {ProcessorSeconds() - begin, prepared.index.tokens()};
  }

 private:
  template <typename Encode>
  Outcome OfTexts(const Path& file, const Encode& encode) {
    std::vector<std::string> texts;
    const std::unique_ptr<RecordReader> reader = OpenRecordReader(file, "text");
    for (Record record; reader->Next(&record);) texts.emplace_back(record.text);
    Outcome outcome;
    const double begin = ProcessorSeconds();
    for (const std::string& text : texts) {
      encode(text);
      outcome.ids += std::ssize(ids_);
    }
    outcome.seconds = ProcessorSeconds() - begin;
    return outcome;
  }

  static DataConfig ConfigOf(const Path& file) {
    DataConfig config;
    config.add_train(file.string());
    return config;
  }

  PreparedCorpus PrepareShard(const Path& file) {
    RemoveAll(folder_);
    return PrepareCorpus(TrainingPreparation(ConfigOf(file), folder_), tokenizer_);
  }

  Tokenizer tokenizer_;
  Path folder_;
  std::optional<Normalizer> normalizer_;
  std::optional<Segmenter> segmenter_;
  std::vector<int32_t> ids_;
  std::string normal_;
};

using Operation = Outcome (Pipeline::*)(const Path&);
const std::map<std::string, Operation> kOperations = {
    {"encode", &Pipeline::Encode},
    {"encode_without_cache", &Pipeline::EncodeWithoutCache},
    {"encode_by_library", &Pipeline::EncodeByLibrary},
    {"read", &Pipeline::Read},
    {"prepare", &Pipeline::Prepare},
    {"batches", &Pipeline::MakeBatches}};

void Serve(const Options& options) {
  Pipeline pipeline(options);
  const Operation operation = kOperations.at(options.operation);
  PrintLine({{"ready", true}});
  std::string line;
  for (const std::string& file : options.files) {
    if (!std::getline(std::cin, line)) break;
    const Outcome outcome = (pipeline.*operation)(file);
    PrintLine({{"seconds", outcome.seconds}, {"ids", outcome.ids}});
  }
  PrintLine(PeakMemory());
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  CLI::App app("The data pipeline on one thread.");
  syntra::Options options;
  app.add_option("--operation", options.operation)
      ->required()
      ->check(CLI::IsMember(syntra::kOperations));
  app.add_option("--tokenizer", options.tokenizer)->required();
  app.add_option("--scratch", options.scratch, "where shards are made and removed");
  app.add_option("files", options.files)->required();
  CLI11_PARSE(app, argc, argv);
  syntra::SetThreadCount(1);
  return syntra::EndedBy([&] { syntra::Serve(options); });
}
