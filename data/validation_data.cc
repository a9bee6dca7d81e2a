// SPDX-License-Identifier: Apache-2.0
#include "data/validation_data.h"

#include "base/error.h"
#include "configs/schema/config.pb.h"
#include "core/thread.h"
#include "data/training_data.h"

namespace syntra {

ValidationData::ValidationData(std::unique_ptr<TokenCorpus> corpus, ExampleSettings settings)
    : corpus_(std::move(corpus)),
      settings_(settings),
      segments_(std::make_unique<SegmentTable>(*corpus_, settings.longest.tokens, kSeed, 0)) {}

ValidationData ValidationData::Open(const DataConfig& config, const Tokenizer& tokenizer,
                                    const Path& prepared, bool verify) {
  const ExampleSettings settings = ExampleSettings::From(config, tokenizer);
  auto corpus =
      std::make_unique<TokenCorpus>(ValidationPreparation(config, prepared).directory, tokenizer,
                                    config.text_field(), config.documents_per_group(), verify);
  return {std::move(corpus), settings};
}

Batch ValidationData::Get(int64_t index, int64_t batch_size, int64_t first_row,
                          int64_t rows) const {
  SYNTRA_CHECK(index >= 0 && index < BatchCount(batch_size), "validation batch {} of {}", index,
               BatchCount(batch_size));
  SYNTRA_CHECK(first_row >= 0 && rows >= 0 && first_row + rows <= batch_size,
               "rows [{}, {}) of a batch of {}", first_row, first_row + rows, batch_size);
  Batch batch(rows, settings_.input_length, settings_.target_length);
  batch.first_example = index * batch_size + first_row;
  ParallelTasks(rows, [&](int64_t row) {
    RowWriter writer(settings_, row, &batch);
    const int64_t segment = batch.first_example + row;
    const std::span<int32_t> tokens = writer.Tokens(segments_->LengthOf(segment));
    segments_->CopyTokens(segment, tokens);
    writer.Append(tokens, DeriveKey(kSeed, "span mask", 0, segment));
  });
  CountTargetTokens(&batch);
  return batch;
}

}  // namespace syntra
