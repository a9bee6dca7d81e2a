// SPDX-License-Identifier: Apache-2.0
// Training batches as a pure function of (corpus, configuration, seed, step): exact resume needs
// the step alone, and any number of ranks sees the same batch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "data/batch.h"
#include "data/epoch_plan.h"
#include "data/prepare.h"
#include "data/token_corpus.h"
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
  // `prepared` as for TrainingPreparation. `verify` checks every shard's digest once.
  static TrainingData Open(const DataConfig& config, const Tokenizer& tokenizer,
                           const Path& prepared, uint64_t seed, bool verify = true);

  // Rows [first_row, first_row + rows) of the batch of `batch_size` rows at `step` (from 0). The
  // rows of the run are those of epoch 0, then of epoch 1, ...; batches run on over the ends of
  // epochs. May be called from several threads.
  Batch Get(int64_t step, int64_t batch_size, int64_t first_row, int64_t rows) const;

  int64_t input_length() const { return settings_.input_length; }
  int64_t target_length() const { return settings_.target_length; }
  const CorpusIndex& index() const { return corpus_->index(); }
  Digest ContentDigest() const { return corpus_->ContentDigest(); }
  // Rows of one pass over the data; may differ a little between epochs, as packing does.
  int64_t RowsInEpoch(int64_t epoch) const { return PlanOf(epoch)->row_count(); }
  std::shared_ptr<const EpochPlan> PlanOf(int64_t epoch) const;

 private:
  // Plans are made when first asked for. All epochs' first rows are kept, but only a few plans.
  struct Plans {
    std::mutex mutex;
    std::vector<int64_t> first_rows{0};  // of epoch 0, 1, ...
    std::map<int64_t, std::shared_ptr<const EpochPlan>> recent;
  };
  struct Row {
    std::shared_ptr<const EpochPlan> plan;
    int64_t index;
  };

  TrainingData(std::unique_ptr<TokenCorpus> corpus, ExampleSettings settings, bool pack,
               uint64_t seed);
  std::shared_ptr<const EpochPlan> PlanLocked(int64_t epoch) const;
  std::vector<Row> LocateRows(int64_t first, int64_t count) const;

  std::unique_ptr<TokenCorpus> corpus_;
  ExampleSettings settings_;
  bool pack_;
  uint64_t seed_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace syntra
