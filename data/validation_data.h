// SPDX-License-Identifier: Apache-2.0
// A split that a model is evaluated on: one example a row, in the order of the data, the same in
// every run. A run may have any number of them, told apart by the names of their sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/batch.h"
#include "data/corpus_index.h"
#include "data/packer.h"
#include "data/tokenizer.h"

namespace syntra {

class DataConfig;

class ValidationData {
 public:
  // The graph seed with which the T5 authors evaluate.
  static constexpr uint64_t kSeed = 12345;

  // Epoch 0 of the source; of `packing`, only row, trim and layout count.
  ValidationData(std::shared_ptr<const ExampleSource> source, const RowPacking& packing);

  // The validation corpus of a configuration, prepared as ValidationPreparation says, under its
  // objective, drawn with kSeed, "validation" by name.
  static ValidationData Open(const DataConfig& config, const RowLayout& layout,
                             const Tokenizer& tokenizer, const PreparedCorpus& prepared);

  const std::string& name() const { return source_->name(); }
  int64_t example_count() const { return examples_->size(); }
  // Examples [first, first + rows), which must exist. Trimmed rows are as long as these examples
  // need.
  Batch Examples(int64_t first, int64_t rows) const;

  // Whole batches of `batch_size` rows. The examples after the last whole batch are never used, as
  // the T5 code drops them too.
  int64_t BatchCount(int64_t batch_size) const { return example_count() / batch_size; }
  // Rows [first_row, first_row + rows) of batch `index` < BatchCount(batch_size).
  Batch Get(int64_t index, int64_t batch_size, int64_t first_row, int64_t rows) const;

  Digest ContentDigest() const { return source_->ContentDigest(); }

 private:
  std::shared_ptr<const ExampleSource> source_;
  RowPacking packing_;
  std::shared_ptr<const ExampleEpoch> examples_;
};

}  // namespace syntra
