// SPDX-License-Identifier: Apache-2.0
// Training batches as a pure function of (source, packing, seed, step): exact resume needs the step
// alone, and any number of ranks sees the same batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch.h"
#include "data/corpus_index.h"
#include "data/epoch_sequence.h"
#include "data/example_source.h"
#include "data/packer.h"
#include "data/prepare.h"
#include "data/tokenizer.h"

namespace syntra {

class DataConfig;

// How to prepare the two splits of a configuration under `prepared`: <prepared>/train,
// .../validation.
PrepareOptions TrainingPreparation(const DataConfig& config, const Path& prepared);
PrepareOptions ValidationPreparation(const DataConfig& config, const Path& prepared);
// Both, or the first alone if the configuration names no validation data.
std::vector<PrepareOptions> Preparations(const DataConfig& config, const Path& prepared);

class TrainingData {
 public:
  // The examples of a source, packed into rows. Throws Error(kData) if it has none.
  TrainingData(std::shared_ptr<const ExampleSource> source, const RowPacking& packing,
               uint64_t seed);

  // The training corpus of a configuration, prepared as TrainingPreparation says, under its
  // objective.
  static TrainingData Open(const DataConfig& config, const RowLayout& layout,
                           const Tokenizer& tokenizer, const PreparedCorpus& prepared,
                           uint64_t seed);

  // Rows [first_row, first_row + rows) of the batch of `batch_size` rows at `step` (from 0). The
  // rows of the run are those of epoch 0, then of epoch 1, ...; batches run on over the ends of
  // epochs. If rows are trimmed, a batch is ordered by length, the shortest first, so that the rows
  // of a part have similar lengths, and the result is as long as these rows need. May be called
  // from several threads.
  Batch Get(int64_t step, int64_t batch_size, int64_t first_row, int64_t rows) const;

  bool Trims() const { return packing_.Trims(); }
  int64_t input_length() const { return packing_.row.inputs; }
  int64_t target_length() const { return packing_.row.targets; }
  Digest ContentDigest() const { return source_->ContentDigest(); }
  // Rows of one pass over the data; may differ a little between epochs, as packing does.
  int64_t RowsInEpoch(int64_t epoch) const { return RowsOf(epoch)->size(); }
  std::shared_ptr<const PackedEpoch> RowsOf(int64_t epoch) const { return rows_.At(epoch); }

  // A place for a checkpoint before `step`, from which equal data finds the batches of later steps
  // without packing all epochs before them again: "epoch first_row".
  std::string PositionAt(int64_t step, int64_t batch_size) const;
  // Throws Error(kCheckpoint) for what PositionAt cannot have given.
  void RestorePosition(std::string_view position);

 private:
  struct Row {
    std::shared_ptr<const PackedEpoch> epoch;
    int64_t number;

    ExampleLengths lengths() const { return epoch->LengthsOf(number); }
  };
  // Rows [first, first + count) of the run.
  std::vector<Row> Locate(int64_t first, int64_t count) const;
  // The rows of a batch, with the arguments of Get.
  std::vector<Row> RowsAt(int64_t step, int64_t batch_size, int64_t first_row, int64_t rows) const;

  std::shared_ptr<const ExampleSource> source_;
  RowPacking packing_;
  EpochSequence<PackedEpoch> rows_;
};

}  // namespace syntra
