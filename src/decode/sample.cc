// SPDX-License-Identifier: Apache-2.0
// Sampling by counter: the number that draws a token is a function of the seed, the input's tokens,
// the sample's number and the position. So outputs do not depend on batches, ranks and order.
#include <algorithm>

#include "core/random.h"
#include "core/thread.h"
#include "decode/distribution.h"
#include "decode/strategy.h"

namespace syntra {
namespace {

// Uniform in [0, 1], of 64 bits.
double UniformDouble(const RandomBits& bits) {
  return (static_cast<double>(bits[0]) + static_cast<double>(bits[1]) * 0x1p-32) * 0x1p-32;
}

struct Draw {
  int32_t id = 0;
  double log_probability = 0;
};

class Sample final : public Strategy {
 public:
  explicit Sample(const DecodingConfig& config)
      : sampling_(config.sample()), samples_(config.outputs()) {}

  int64_t rows_per_input() const override { return samples_; }

  std::vector<Hypotheses> Decode(DecodeSession& session, const DecodeBatch& batch) const override {
    const int64_t rows = batch.inputs * samples_;
    std::vector<int32_t> ids = session.first_tokens();
    std::vector<Hypotheses> outputs(batch.inputs, Hypotheses(samples_));
    std::vector<char> ended(rows, 0);
    std::vector<Draw> draws(rows);
    while (session.length() < session.max_length() && !std::ranges::all_of(ended, IsTrue)) {
      session.Append(ids);
      const LogitRows logits = session.logits();
      ParallelFor(rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          if (ended[row]) continue;
          draws[row] = DrawNext(logits[row], KeyOf(batch, row), session.length());
        }
      });
      for (int64_t row = 0; row < rows; ++row) {
        if (ended[row]) continue;
        Hypothesis& output = outputs[row / samples_][row % samples_];
        ids[row] = draws[row].id;
        output.log_probability += draws[row].log_probability;
        ended[row] = batch.ends(row / samples_, output.ids, ids[row]);
        if (!ended[row]) output.ids.push_back(ids[row]);
      }
      for (int64_t i = 0; i < batch.inputs; ++i) {
        const auto of_input = std::span(ended).subspan(i * samples_, samples_);
        if (std::ranges::all_of(of_input, IsTrue)) session.Finish(i);
      }
    }
    for (Hypotheses& of_input : outputs) {
      for (Hypothesis& output : of_input) output.score = output.log_probability;
      std::ranges::stable_sort(of_input, std::greater<>(), &Hypothesis::score);
    }
    return outputs;
  }

 private:
  static bool IsTrue(char flag) { return flag != 0; }

  RandomKey KeyOf(const DecodeBatch& batch, int64_t row) const {
    return DeriveKey(sampling_.seed(), "sample", batch.digests[row / samples_], row % samples_);
  }

  Draw DrawNext(std::span<const float> logits, RandomKey key, int64_t position) const {
    const double log_sum = LogSumExp(logits);
    const int32_t id = DrawToken(logits, sampling_, UniformDouble(RandomAt(key, position)));
    return {id, logits[id] - log_sum};
  }

  SampleDecoding sampling_;
  int64_t samples_;
};

}  // namespace

std::unique_ptr<Strategy> strategy_sample(const DecodingConfig& config) {
  return std::make_unique<Sample>(config);
}

}  // namespace syntra
