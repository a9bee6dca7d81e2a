// SPDX-License-Identifier: Apache-2.0
#include "data/validation_data.h"

#include "base/error.h"
#include "core/thread.h"
#include "data/corpus_source.h"

namespace syntra {

ValidationData::ValidationData(std::shared_ptr<const ExampleSource> source,
                               const RowPacking& packing)
    : source_(std::move(source)), packing_(packing), examples_(source_->Epoch(0)) {
  packing_.pack = false;
}

ValidationData ValidationData::Open(const DataConfig& config, const RowLayout& layout,
                                    const Tokenizer& tokenizer, const PreparedCorpus& prepared) {
  return {CorpusSource::Open(kValidationSplit, config, tokenizer, prepared, kSeed),
          RowPacking::OfCorpus(config, layout)};
}

Batch ValidationData::Examples(int64_t first, int64_t rows) const {
  SYNTRA_CHECK(first >= 0 && rows >= 0 && first + rows <= example_count(),
               "examples [{}, {}) of {}", first, first + rows, example_count());
  ExampleLengths longest;
  for (int64_t row = 0; packing_.Trims() && row < rows; ++row) {
    longest = Longest(longest, packing_.layout->SlotsOf(examples_->LengthsOf(first + row)));
  }
  const ExampleLengths lengths = packing_.BatchLengths(longest);
  Batch batch(rows, lengths.inputs, lengths.targets);
  batch.first_example = first;
  for (int64_t row = 0; row < rows; ++row) examples_->Prefetch(first + row);
  ParallelTasks(rows, [&](int64_t row) {
    RowWriter(*packing_.layout, row, &batch).Append(*examples_, first + row);
  });
  CountTargetTokens(&batch);
  return batch;
}

Batch ValidationData::Get(int64_t index, int64_t batch_size, int64_t first_row,
                          int64_t rows) const {
  SYNTRA_CHECK(index >= 0 && index < BatchCount(batch_size), "validation batch {} of {}", index,
               BatchCount(batch_size));
  SYNTRA_CHECK(first_row >= 0 && rows >= 0 && first_row + rows <= batch_size,
               "rows [{}, {}) of a batch of {}", first_row, first_row + rows, batch_size);
  return Examples(index * batch_size + first_row, rows);
}

}  // namespace syntra
