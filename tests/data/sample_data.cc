// SPDX-License-Identifier: Apache-2.0
#include "tests/data/sample_data.h"

#include "data/training_data.h"
#include "tests/data/corpus_files.h"

namespace syntra {

const Tokenizer& T5() {
  static const Tokenizer tokenizer(SamplePath("spiece.model"), 100);
  return tokenizer;
}

DataConfig SampleConfig() {
  DataConfig config;
  config.add_train(SamplePath("c4-train.*.json.gz").string());
  config.add_validation(SamplePath("c4-validation.*.json.gz").string());
  config.set_tokenizer(SamplePath("spiece.model").string());
  return config;
}

const Path& PreparedSample() {
  static const Path prepared = [] {
    const Path directory = ScratchDirectory("prepared_sample");
    PrepareCorpus(TrainingPreparation(SampleConfig(), directory), T5());
    PrepareCorpus(ValidationPreparation(SampleConfig(), directory), T5());
    return directory;
  }();
  return prepared;
}

void Append(Batch* whole, const Batch& part) {
  const auto add = [&](std::vector<int32_t>* to, int64_t length, const std::vector<int32_t>& from,
                       int64_t part_length) {
    for (int64_t row = 0; row < part.rows; ++row) {
      const auto begin = from.begin() + row * part_length;
      to->insert(to->end(), begin, begin + part_length);
      to->resize(to->size() + length - part_length);
    }
  };
  const auto add_inputs = [&](std::vector<int32_t>* to, const std::vector<int32_t>& from) {
    add(to, whole->input_length, from, part.input_length);
  };
  const auto add_targets = [&](std::vector<int32_t>* to, const std::vector<int32_t>& from) {
    add(to, whole->target_length, from, part.target_length);
  };
  whole->rows += part.rows;
  add_inputs(&whole->encoder_ids, part.encoder_ids);
  add_inputs(&whole->encoder_segments, part.encoder_segments);
  add_inputs(&whole->encoder_positions, part.encoder_positions);
  add_targets(&whole->decoder_ids, part.decoder_ids);
  add_targets(&whole->targets, part.targets);
  add_targets(&whole->decoder_segments, part.decoder_segments);
  add_targets(&whole->decoder_positions, part.decoder_positions);
  whole->target_tokens += part.target_tokens;
}

void ExpectEqual(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.input_length, b.input_length);
  EXPECT_EQ(a.target_length, b.target_length);
  EXPECT_EQ(a.first_example, b.first_example);
  EXPECT_EQ(a.target_tokens, b.target_tokens);
  EXPECT_TRUE(a.encoder_ids == b.encoder_ids);
  EXPECT_TRUE(a.encoder_segments == b.encoder_segments);
  EXPECT_TRUE(a.encoder_positions == b.encoder_positions);
  EXPECT_TRUE(a.decoder_ids == b.decoder_ids);
  EXPECT_TRUE(a.targets == b.targets);
  EXPECT_TRUE(a.decoder_segments == b.decoder_segments);
  EXPECT_TRUE(a.decoder_positions == b.decoder_positions);
}

}  // namespace syntra
