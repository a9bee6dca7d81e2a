// SPDX-License-Identifier: Apache-2.0
// Performer (Choromanski et al. 2021, FAVOR+): positive random features whose products are, on
// average, the softmax kernel exp(q . k / K^0.5) (lemma 1), or features relu(w . x). The random
// vectors w are orthogonal in groups of K (section 2.4) and the same for all heads of a layer. They
// are parameters that do not learn; training may draw them anew from time to time.
#include <cmath>

#include "mixers/feature_attention.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// Added to every feature, so that no sum of weights is zero; as in the authors' code.
constexpr double kSoftmaxEpsilon = 1e-4, kReluEpsilon = 1e-3;
constexpr double kPaddingIsLess = 1e30;  // than any product

class Performer final : public FeatureAttention {
 public:
  explicit Performer(const PerformerConfig& config)
      : FeatureAttention({.feature_field = "features",
                          .heads = config.heads(),
                          .head_size = config.head_size(),
                          .features = config.features(),
                          .chunk_length = config.chunk_length()}),
        config_(config) {}

 private:
  // In f32 up to the exponential, whose argument would lose digits that count. The published factor
  // features^-0.5 cancels in the division.
  Value Features(const Scope& scope, const Rows& rows) const override {
    const double factor = std::pow(config_.head_size(), -0.25);
    const Value scaled = AffineMap(scope, Cast(scope, rows.x, DType::kF32), factor, 0);
    const Value vectors = scope.Parameter("features", {config_.head_size(), config_.features()},
                                          Initializer::Orthogonal(),
                                          /*trainable=*/false, config_.redraw_every());
    const Value products = scope.One("head_matmul", {{"heads", heads()}}, {scaled, vectors});
    const Value features =
        config_.kernel() == PerformerConfig::RELU
            ? AffineMap(scope, Activation(scope, "relu", products), 1, kReluEpsilon)
            : Exponentials(scope, InHeads(scope, products, heads()), scaled, rows);
    return Cast(scope, features, scope.TypeOf(rows.x).dtype);
  }

  // exp(w . x - |x|^2 / 2) for products w . x [B, T, H, F]. As in the authors' code, the features
  // of a query, and those of all keys if every query reads all, are divided by the largest
  // exp(w . x) among them. This factor cancels in the division of the sums, but not in the epsilon
  // that is added here. Terms that are the same for all features are summed before they are added
  // to them.
  Value Exponentials(const Scope& scope, Value products, Value x, const Rows& rows) const {
    const Value in_heads = InHeads(scope, x, heads());
    const Shape shape = scope.TypeOf(in_heads).shape;
    const Value squares = SumTo(scope, in_heads, {shape[0], shape[1], shape[2], 1}, in_heads);
    Value offset = AffineMap(scope, squares, -0.5, 0);
    if (rows.side == Side::kQuery) {
      offset = Add(scope, offset, AffineMap(scope, Largest(scope, products), -1));
    } else if (rows.all_read) {
      const Value hidden = Hidden(scope, rows.all_read);
      const Value largest = Largest(
          scope, Transpose(scope, Add(scope, Largest(scope, products), hidden), {0, 3, 2, 1}));
      offset = Add(scope, offset, AffineMap(scope, largest, -1));
      // Twice, for where a row is all padding, its largest is hidden, too.
      offset = Add(scope, offset, AffineMap(scope, hidden, 2));
    }
    const Value exponents = Add(scope, products, offset);
    return AffineMap(scope, Joined(scope, Activation(scope, "exp", exponents)), 1, kSoftmaxEpsilon);
  }

  static Value Largest(const Scope& scope, Value x) {
    return scope.program().Record("reduce_max", {}, {x})[0];
  }

  // The mask that hides the products of padding, [B, T, 1, 1].
  static Value Hidden(const Scope& scope, Value segments) {
    const Shape shape = scope.TypeOf(segments).shape;
    const Value there = Reshape(scope, NotZero(scope, segments), {shape[0], shape[1], 1, 1});
    return AffineMap(scope, there, kPaddingIsLess, -kPaddingIsLess);
  }

  PerformerConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_performer(const MixerConfig& config) {
  return std::make_unique<Performer>(config.performer());
}

}  // namespace syntra
