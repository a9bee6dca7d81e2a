// SPDX-License-Identifier: Apache-2.0
// Validation batches: one example a row, in corpus order, masked with a fixed seed, the same in
// every run.
#pragma once

#include <cstdint>
#include <memory>

#include "data/batch.h"
#include "data/segment_table.h"
#include "data/token_corpus.h"
#include "data/tokenizer.h"

namespace syntra {

class DataConfig;

class ValidationData {
 public:
  // The graph seed with which the T5 authors evaluate.
  static constexpr uint64_t kSeed = 12345;

  // `prepared` as for ValidationPreparation.
  static ValidationData Open(const DataConfig& config, const Tokenizer& tokenizer,
                             const Path& prepared, bool verify = true);

  // Whole batches of `batch_size` rows. The examples behind the last whole batch are never used, as
  // the T5 code drops them too.
  int64_t BatchCount(int64_t batch_size) const { return example_count() / batch_size; }
  int64_t example_count() const { return segments_->segment_count(); }

  // Rows [first_row, first_row + rows) of batch `index` < BatchCount(batch_size).
  Batch Get(int64_t index, int64_t batch_size, int64_t first_row, int64_t rows) const;

  int64_t input_length() const { return settings_.input_length; }
  int64_t target_length() const { return settings_.target_length; }
  const CorpusIndex& index() const { return corpus_->index(); }
  Digest ContentDigest() const { return corpus_->ContentDigest(); }

 private:
  ValidationData(std::unique_ptr<TokenCorpus> corpus, ExampleSettings settings);

  std::unique_ptr<TokenCorpus> corpus_;
  ExampleSettings settings_;
  std::unique_ptr<SegmentTable> segments_;
};

}  // namespace syntra
