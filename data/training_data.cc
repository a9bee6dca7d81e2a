// SPDX-License-Identifier: Apache-2.0
#include "data/training_data.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "configs/schema/config.pb.h"
#include "core/thread.h"
#include "data/corpus_source.h"

namespace syntra {
namespace {

template <typename Patterns>
PrepareOptions Preparation(const DataConfig& config, const std::string& field,
                           const Patterns& patterns, const Path& directory) {
  return {.patterns = {patterns.begin(), patterns.end()},
          .field = field,
          .directory = directory,
          .text_field = config.text_field(),
          .on_bad_record = {.fail = config.on_bad_record() == DataConfig::FAIL,
                            .max_fraction = config.max_bad_fraction()},
          .on_progress = {}};
}

}  // namespace

PrepareOptions TrainingPreparation(const DataConfig& config, const Path& prepared) {
  return Preparation(config, "data.train", config.train(), prepared / kTrainSplit);
}

PrepareOptions ValidationPreparation(const DataConfig& config, const Path& prepared) {
  return Preparation(config, "data.validation", config.validation(), prepared / kValidationSplit);
}

std::vector<PrepareOptions> Preparations(const DataConfig& config, const Path& prepared) {
  std::vector<PrepareOptions> splits{TrainingPreparation(config, prepared)};
  if (config.validation_size() > 0) splits.push_back(ValidationPreparation(config, prepared));
  return splits;
}

TrainingData::TrainingData(std::shared_ptr<const ExampleSource> source, const RowPacking& packing,
                           uint64_t seed)
    : source_(std::move(source)),
      packing_(packing),
      rows_([source = source_, packing, seed](int64_t epoch) {
        return std::make_shared<const PackedEpoch>(source->Epoch(epoch), packing, seed, epoch);
      }) {
  if (RowsInEpoch(0) == 0) Fail(ExitCode::kData, "{} has no examples", source_->name());
}

TrainingData TrainingData::Open(const DataConfig& config, const RowLayout& layout,
                                const Tokenizer& tokenizer, const PreparedCorpus& prepared,
                                uint64_t seed) {
  return {CorpusSource::Open(kTrainSplit, config, tokenizer, prepared, seed),
          RowPacking::OfCorpus(config, layout), seed};
}

std::vector<TrainingData::Row> TrainingData::Locate(int64_t first, int64_t count) const {
  std::vector<Row> rows;
  for (const auto& run : rows_.Locate(first, count)) {
    for (int64_t i = 0; i < run.count; ++i) rows.push_back({run.epoch, run.first + i});
  }
  return rows;
}

// By the last row that was trained on, whose epoch is known.
std::string TrainingData::PositionAt(int64_t step, int64_t batch_size) const {
  const EpochStart start = rows_.StartOf(std::max<int64_t>(0, step * batch_size - 1));
  return fmt::format("{} {}", start.epoch, start.first);
}

void TrainingData::RestorePosition(std::string_view position) {
  const std::vector<std::string> parts = Split(position, ' ');
  EpochStart start;
  const bool is_position = parts.size() == 2 && ParseInt64(parts[0], &start.epoch) &&
                           ParseInt64(parts[1], &start.first) && start.epoch >= 0 &&
                           start.first >= start.epoch;  // an epoch has a row at least
  if (!is_position || (start.epoch == 0) != (start.first == 0)) {
    Fail(ExitCode::kCheckpoint, "\"{}\" is no position in the data", Printable(position, 40));
  }
  rows_.CountFrom(start);
}

std::vector<TrainingData::Row> TrainingData::RowsAt(int64_t step, int64_t batch_size,
                                                    int64_t first_row, int64_t rows) const {
  const int64_t first = step * batch_size;
  if (!Trims()) return Locate(first + first_row, rows);
  std::vector<Row> batch = Locate(first, batch_size);
  std::ranges::stable_sort(batch, {}, [](const Row& row) {
    const ExampleLengths lengths = row.lengths();
    return std::pair(lengths.inputs, lengths.targets);
  });
  return {batch.begin() + first_row, batch.begin() + first_row + rows};
}

Batch TrainingData::Get(int64_t step, int64_t batch_size, int64_t first_row, int64_t rows) const {
  SYNTRA_CHECK(step >= 0 && first_row >= 0 && rows >= 0 && first_row + rows <= batch_size,
               "rows [{}, {}) of a batch of {} at step {}", first_row, first_row + rows, batch_size,
               step);
  const std::vector<Row> taken = RowsAt(step, batch_size, first_row, rows);
  ExampleLengths longest;
  if (Trims()) {
    for (const Row& row : taken) longest = Longest(longest, row.lengths());
  }
  const ExampleLengths lengths = packing_.BatchLengths(longest);
  Batch batch(rows, lengths.inputs, lengths.targets);
  batch.first_example = step * batch_size + first_row;
  // The rows of a batch lie anywhere in the corpus. If they must be read from a disk, it can work
  // on all of them at once.
  for (const Row& row : taken) row.epoch->Prefetch(row.number);
  ParallelTasks(rows, [&](int64_t row) {
    RowWriter writer(*packing_.layout, row, &batch);
    taken[row].epoch->Write(taken[row].number, &writer);
  });
  CountTargetTokens(&batch);
  return batch;
}

}  // namespace syntra
