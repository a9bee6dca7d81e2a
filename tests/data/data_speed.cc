// SPDX-License-Identifier: Apache-2.0
// Prints the speed of each stage of the data pipeline on this machine, for one corpus file:
//   data_speed CORPUS TOKENIZER
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "configs/schema/config.pb.h"
#include "core/thread.h"
#include "data/record_reader.h"
#include "data/training_data.h"

namespace syntra {
namespace {

constexpr int kTurns = 5;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Print(const char* stage, double megabytes, double seconds) {
  std::printf("%-38s %8.1f MB/s\n", stage, megabytes / seconds);
}

void Run(const Path& corpus, const Path& model) {
  std::vector<std::string> documents;
  double start = Now(), megabytes = 0;
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(corpus, "text");
  for (Record record; reader->Next(&record);) {
    documents.emplace_back(record.text);
    megabytes += static_cast<double>(record.text.size()) * 1e-6;
  }
  Print("read and parse", megabytes, Now() - start);

  // In turn, so that a machine whose speed changes treats them alike; medians of processor time.
  std::optional<Tokenizer> tokenizer;
  std::vector<double> plain, empty, full;
  std::vector<int32_t> ids;
  const auto time = [&](const auto& encode) {
    const std::clock_t begin = std::clock();
    for (const std::string& document : documents) encode(document);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    tokenizer.emplace(model, 100);
    plain.push_back(time([&](const std::string& text) { tokenizer->EncodePlainly(text, &ids); }));
    empty.push_back(time([&](const std::string& text) { tokenizer->Encode(text, &ids); }));
    full.push_back(time([&](const std::string& text) { tokenizer->Encode(text, &ids); }));
  }
  Print("tokenize, SentencePiece", megabytes, Median(plain));
  Print("tokenize, empty word cache", megabytes, Median(empty));
  Print("tokenize, full word cache", megabytes, Median(full));

  DataConfig config;
  config.add_train(corpus.string());
  const Path prepared = std::filesystem::temp_directory_path() / "syntra_data_speed";
  RemoveAll(prepared);
  start = Now();
  PrepareCorpus(TrainingPreparation(config, prepared), *tokenizer);
  Print("prepare, full word cache", megabytes, Now() - start);
  const TrainingData data = TrainingData::Open(config, SeparateRows(), *tokenizer, prepared, 1);
  SetThreadCount(1);
  int64_t tokens = 0;
  start = Now();
  for (int64_t step = 0; step < 100; ++step) tokens += data.Get(step, 128, 0, 128).rows * 568;
  const double seconds = Now() - start;
  std::printf("%-38s %8.1f batches/s, %.1f Mtok/s\n", "batches of 128 x 512/114, one thread",
              100 / seconds, static_cast<double>(tokens) * 1e-6 / seconds);
  RemoveAll(prepared);
}

}  // namespace
}  // namespace syntra

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: data_speed CORPUS TOKENIZER\n");
    return 2;
  }
  try {
    syntra::Run(arguments[1], arguments[2]);
  } catch (const syntra::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
