// SPDX-License-Identifier: Apache-2.0
// Greedy decoding: the most probable token at each position. The argmax is taken on the device.
#include <algorithm>
#include <cmath>

#include "decode/distribution.h"
#include "decode/strategy.h"

namespace syntra {
namespace {

class Greedy final : public Strategy {
 public:
  NextTokens next_tokens() const override { return NextTokens::kBest; }

  std::vector<Hypotheses> Decode(DecodeSession& session, const DecodeBatch& batch) const override {
    std::vector<int32_t> ids = session.first_tokens();
    std::vector<Hypotheses> outputs(batch.inputs, Hypotheses(1));
    std::vector<bool> ended(batch.inputs, false);
    int64_t open = batch.inputs;
    while (open > 0 && session.length() < session.max_length()) {
      session.Append(ids);
      ids = session.best();
      const std::vector<float> log_probabilities = session.log_probabilities();
      for (int64_t i = 0; i < batch.inputs; ++i) {
        if (ended[i]) continue;
        if (ids[i] < 0) throw NotFiniteOutput(NAN);
        Hypothesis& output = outputs[i].front();
        if (!log_probabilities.empty()) output.log_probability += Finite(log_probabilities[i]);
        ended[i] = batch.ends(i, output.ids, ids[i]);
        if (ended[i]) {
          --open;
          session.Finish(i);
        } else {
          output.ids.push_back(ids[i]);
        }
      }
      // Rows that nobody reads go on, and -1 is no token.
      std::ranges::replace(ids, -1, 0);
    }
    for (Hypotheses& output : outputs) output.front().score = output.front().log_probability;
    return outputs;
  }
};

}  // namespace

std::unique_ptr<Strategy> strategy_greedy(const DecodingConfig&) {
  return std::make_unique<Greedy>();
}

}  // namespace syntra
