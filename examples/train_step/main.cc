// SPDX-License-Identifier: Apache-2.0
// Trains a small Random + Vanilla Synthesizer to copy sequences. It uses Syntra's engine without
// the command line, corpora or a run directory.
#include <cstdio>

#include "config/config.h"
#include "core/random.h"
#include "train/replica.h"

namespace {

constexpr int64_t kRows = 16, kLength = 8, kVocabulary = 32;

constexpr char kConfig[] = R"(
  model {
    width: 64 encoder_layers: 1 decoder_layers: 1 vocabulary_size: 32
    feed_forward { width: 128 }
    mixer { attention { heads: 2 head_size: 32 term { random { max_length: 8 } } term { dot_product {} } } }
    cross_attention { heads: 2 head_size: 32 }
  }
  data { input_length: 8 extra_ids: 1 }
  optimizer { kind: ADAMW }
)";

// Random tokens. The targets are the same tokens. Token 0 is padding and starts the decoder.
syntra::Batch CopyTask(int64_t step) {
  syntra::Batch batch(kRows, kLength, kLength);
  for (int64_t i = 0; i < kRows * kLength; ++i) {
    const uint32_t bits = syntra::RandomAt({1, 2}, step * kRows * kLength + i)[0];
    const auto position = static_cast<int32_t>(i % kLength);
    batch["encoder_ids"][i] = batch["targets"][i] = 1 + syntra::UniformBelow(bits, kVocabulary - 1);
    batch["decoder_ids"][i] = position == 0 ? 0 : batch["targets"][i - 1];
    batch["encoder_positions"][i] = batch["decoder_positions"][i] = position;
    batch["encoder_segments"][i] = batch["decoder_segments"][i] = 1;
  }
  batch.target_tokens = kRows * kLength;
  return batch;
}

void Train() {
  const syntra::Config config = syntra::ParseConfig("main.cc", kConfig, {}, syntra::kForModel);
  syntra::Replica replica(syntra::TrainingPlan::Make(config), /*rank=*/0);
  replica.InitializeParameters(/*seed=*/1);
  for (int64_t step = 0; step <= 800; ++step) {
    replica.Differentiate(CopyTask(step),
                          {.seed = 1, .step = step, .inverse_denominator = 1.0 / (kRows * kLength)},
                          syntra::Gradients::kReplace);
    replica.Update({.step = step, .rate = 1e-3});
    if (step % 100 == 0)
      std::printf("step %3ld  loss %.3f\n", long{step}, replica.Outcome().sums.PerToken());
  }
}

}  // namespace

int main() {
  try {
    Train();
  } catch (const syntra::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
