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
  Batch sum(whole->rows + part.rows, whole->input_length, whole->target_length);
  for (const auto& [name, values] : sum.tensors()) {
    const auto put = [&, &name = name](const Batch& from, int64_t first_row) {
      for (int64_t row = 0; row < from.rows; ++row) {
        std::ranges::copy(from.Row(name, row),
                          sum[name].begin() + (first_row + row) * sum.LengthOf(name));
      }
    };
    put(*whole, 0);
    put(part, whole->rows);
  }
  sum.first_example = whole->first_example;
  sum.target_tokens = whole->target_tokens + part.target_tokens;
  *whole = std::move(sum);
}

void ExpectEqual(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.input_length, b.input_length);
  EXPECT_EQ(a.target_length, b.target_length);
  EXPECT_EQ(a.first_example, b.first_example);
  EXPECT_EQ(a.target_tokens, b.target_tokens);
  EXPECT_TRUE(a.tensors() == b.tensors());
}

}  // namespace syntra
