// SPDX-License-Identifier: Apache-2.0
// AFT (Zhai et al. 2021, "An Attention Free Transformer", equations 2 and 3): for each column
//   y_t = sigmoid(q_t) sum_s exp(k_s + w_ts) v_s / sum_s exp(k_s + w_ts)
// with learned biases w between positions: between all (AFT-full), between neighbours (AFT-local)
// or none (AFT-simple); a table, or a product of two narrow ones (section 3.1).

#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// Keys farther from zero count as if they were so far: the square of a sum of exp(k), by which the
// gradient divides, is a float then.
constexpr double kFarthestKey = 25;
// Added to the sums that are divided by: a row that is all padding has sums of zero. Others have at
// least e^-25 over the row's length.
constexpr double kDenominatorEpsilon = 1e-18;
constexpr double kDeviation = 0.01;  // of the first values of the tables

class AttentionFree final : public TokenMixer {
 public:
  explicit AttentionFree(const AttentionFreeConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    MixerTraits traits{.causal = true,
                       .prefills = true,
                       .sees_order = config_.window() > 0,
                       .per_token = {{config_.width(), {"width"}}}};
    if (config_.window() > 0) {
      traits.limits = {LengthLimit::OfMaxLength(config_.max_length())};
    }
    return traits;
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    Weighted weighted = Weigh(scope, input.x);
    Remember(scope, input, "weights", weighted.weights);
    Remember(scope, input, "values", weighted.values);
    weighted.weights = WithoutPadding(scope, weighted.weights, input.segments);
    weighted.values = WithoutPadding(scope, weighted.values, input.segments);
    const Rows rows{.length = scope.TypeOf(input.x).shape[1]};
    return Output(scope, Map(scope, rows, input.causal), weighted, input.x);
  }

  // Remembers exp(k) and exp(k) v of all positions.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    Weighted weighted = Weigh(scope, step.x);
    weighted.weights = Remember(scope, step, "weights", weighted.weights);
    weighted.values = Remember(scope, step, "values", weighted.values);
    const Rows rows{.length = step.length, .start = step.start};
    return Output(scope, Map(scope, rows, true), weighted, step.x);
  }

 private:
  // exp(k) and exp(k) v, [B, T, width].
  struct Weighted {
    Value weights, values;
  };
  // The rows of tables over positions that are wanted: all of `length` or, in a step, that at
  // `start`.
  struct Rows {
    int64_t length;
    Value start;

    Value Of(const Scope& scope, Value table) const {
      const Value first = First(scope, table, 0, length);
      return start ? GatherRows(scope, first, 0, start) : first;
    }
  };

  Weighted Weigh(const Scope& scope, Value x) const {
    const Value key = Project(scope, "key", x, config_.width());
    const auto excess = [&](double sign) {
      return Activation(scope, "relu", AffineMap(scope, key, sign, -kFarthestKey));
    };
    const Value above = Add(scope, key, AffineMap(scope, excess(1), -1, 0));
    const Value weights = Activation(scope, "exp", Add(scope, above, excess(-1)));
    return {weights, Multiply(scope, weights, Project(scope, "value", x, config_.width()))};
  }

  // exp(w_ts) in f32 [rows, length]. Each row is divided by its sum, which cancels.
  Value Map(const Scope& scope, const Rows& rows, bool causal) const {
    // A table of what the functions say about query i and key j.
    const auto constant = [&](const auto& entry) {
      std::vector<float> table;
      for (int64_t i = 0; i < rows.length; ++i) {
        for (int64_t j = 0; j < rows.length; ++j) table.push_back(entry(i, j));
      }
      return rows.Of(scope, scope.program().Constant({rows.length, rows.length}, std::move(table)));
    };
    const int64_t window = config_.window();
    Value biases = constant([&](int64_t i, int64_t j) { return causal && j > i ? -1e9F : 0.0F; });
    if (window > 0) {
      const Value learned = Multiply(
          scope, Biases(scope, rows),
          constant([&](int64_t i, int64_t j) { return std::abs(i - j) < window ? 1.0F : 0.0F; }));
      biases = Add(scope, biases, learned);
    }
    return scope.One("softmax", {}, {biases});
  }

  Value Biases(const Scope& scope, const Rows& rows) const {
    const int64_t rank = config_.rank();
    const auto table = [&](const char* name, int64_t columns) {
      return scope.Parameter(name, {config_.max_length(), columns},
                             Initializer::Normal(kDeviation));
    };
    if (rank == 0) {
      const Value biases = table("biases", config_.max_length());
      return First(scope, rows.Of(scope, biases), 1, rows.length);
    }
    const Value queries = rows.Of(scope, table("query_biases", rank));
    const Value keys = First(scope, table("key_biases", rank), 0, rows.length);
    return Product(scope, queries, keys, DType::kF32, Transposed::kRight);
  }

  Value Output(const Scope& scope, Value map, const Weighted& weighted, Value x) const {
    const auto sum = [&](Value over) {
      return scope.One("shared_matmul", {{"transpose", false}}, {map, over});
    };
    const Value weight = AffineMap(scope, sum(weighted.weights), 1, kDenominatorEpsilon);
    const Value mean =
        Multiply(scope, sum(weighted.values), Activation(scope, "reciprocal", weight));
    const Value gate = Activation(scope, "sigmoid", Project(scope, "query", x, config_.width()));
    return ProjectOutput(scope, Multiply(scope, gate, mean), scope.TypeOf(x).shape[2]);
  }

  AttentionFreeConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_attention_free(const MixerConfig& config) {
  return std::make_unique<AttentionFree>(config.attention_free());
}

}  // namespace syntra
