// SPDX-License-Identifier: Apache-2.0
// The output projection and its softmax cross-entropy in one op, so that the logits are never all
// in memory. hidden [B, T, D], embedding [V, D], targets [B, T], c = inverse_denominator [1]. With
// l_v = scale * hidden . embedding_v, L = log sum_v exp(l_v), s = label_smoothing and q_v = (1 - s)
// [v = target - first] + s / V, over the tokens with target > 0:
//   loss = c * sum(L - sum_v q_v l_v + z_loss L^2)      (z-loss: Mesh TensorFlow, layers.py)
//   statistics = (sum(L - l_target), sum(z_loss L^2), number of tokens)  (math/loss_statistics.h)
// Backward, with p_v = exp(l_v - L):  d l_v = c dloss (p_v (1 + 2 z_loss L) - q_v).
// The gradient op computes the logits anyway, so it also returns the loss and the statistics. A
// training program runs only the gradient op. Attributes {scale, z_loss, label_smoothing, first}.
#include <algorithm>
#include <cmath>

#include "kernels/math/loss_statistics.h"
#include "kernels/ops/shapes.h"
#include "kernels/target_row.h"

namespace syntra {
namespace {

// One token's logits and the smoothed target distribution.
class Token {
 public:
  Token(const Attributes& attributes, const ReferenceTensor& hidden,
        const ReferenceTensor& embedding)
      : scale_(attributes.Number("scale")),
        smoothing_(attributes.Number("label_smoothing")),
        first_(static_cast<int32_t>(attributes.Int("first"))),
        hidden_(hidden.numbers),
        embedding_(embedding.numbers),
        width_(embedding.dim(1)),
        logits_(embedding.dim(0)) {}

  // False if the token has no target.
  bool Load(int64_t token, int32_t target) {
    target_ = TargetRow(target, first_);
    SYNTRA_CHECK(target_ < vocabulary(), "target {} outside a vocabulary of {}", target,
                 vocabulary());
    if (target_ < 0) return false;
    for (int64_t v = 0; v < vocabulary(); ++v) {
      double dot = 0.0;
      for (int64_t d = 0; d < width_; ++d) {
        dot += hidden_[token * width_ + d] * embedding_[v * width_ + d];
      }
      logits_[v] = scale_ * dot;
    }
    return true;
  }

  int64_t vocabulary() const { return static_cast<int64_t>(logits_.size()); }
  double logit(int64_t v) const { return logits_[v]; }
  double target_logit() const { return logits_[target_]; }
  double wanted(int64_t v) const {
    return smoothing_ / static_cast<double>(vocabulary()) + (v == target_ ? 1.0 - smoothing_ : 0.0);
  }

  double LogSum() const {
    const double largest = *std::ranges::max_element(logits_);
    double sum = 0.0;
    for (double logit : logits_) sum += std::exp(logit - largest);
    return largest + std::log(sum);
  }

 private:
  double scale_, smoothing_;
  int32_t first_;
  std::span<const double> hidden_, embedding_;
  int64_t width_, target_ = 0;
  std::vector<double> logits_;
};

void CheckTokens(std::string_view op, std::span<const TensorType> inputs) {
  const Shape& hidden = inputs[0].shape;
  CheckShape(op, "embedding", inputs[1], {inputs[1].shape[0], hidden[2]});
  CheckShape(op, "targets", inputs[2], {hidden[0], hidden[1]});
  CheckShape(op, "inverse_denominator", inputs[3], {1});
}

std::vector<TensorType> Infer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("linear_cross_entropy", inputs,
                {{"hidden", kActivation, 3},
                 {"embedding", kParameter, 2},
                 {"targets", kInteger, 2},
                 {"inverse_denominator", kParameter, 1}});
  CheckTokens("linear_cross_entropy", inputs);
  return {F32({1}), F32({loss_statistics::kSlots})};
}

// The sums over the tokens.
class LossSums {
 public:
  explicit LossSums(double z_loss) : z_loss_(z_loss) {}

  void Add(const Token& token, double log_sum) {
    double expected = 0.0;
    for (int64_t v = 0; v < token.vocabulary(); ++v) expected += token.wanted(v) * token.logit(v);
    total_ += log_sum - expected + z_loss_ * log_sum * log_sum;
    negative_log_likelihood_ += log_sum - token.target_logit();
    z_terms_ += z_loss_ * log_sum * log_sum;
    tokens_ += 1.0;
  }

  void Store(double inverse_denominator, const ReferenceTensor& loss,
             const ReferenceTensor& statistics) const {
    if (loss.present()) loss.numbers[0] = inverse_denominator * total_;
    if (!statistics.present()) return;
    statistics.numbers[loss_statistics::kNegativeLogP] = negative_log_likelihood_;
    statistics.numbers[loss_statistics::kZLoss] = z_terms_;
    statistics.numbers[loss_statistics::kTokens] = tokens_;
  }

 private:
  double z_loss_, total_ = 0.0, negative_log_likelihood_ = 0.0, z_terms_ = 0.0, tokens_ = 0.0;
};

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const auto targets = inputs[2].integers;
  Token token(call.attributes, inputs[0], inputs[1]);
  LossSums sums(call.attributes.Number("z_loss"));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!token.Load(static_cast<int64_t>(i), targets[i])) continue;
    sums.Add(token, token.LogSum());
  }
  sums.Store(inputs[3].numbers[0], outputs[0], outputs[1]);
}

// Only the loss has a gradient; the statistics are only reported.
void Gradient(GradientRule& rule) {
  if (!rule.output_gradient(0)) return;
  rule.Contribute(
      "linear_cross_entropy_grad", rule.attributes(),
      {rule.input(0), rule.input(1), rule.input(2), rule.input(3), rule.output_gradient(0)},
      {0, 1});
}

double Flops(const OpCall& call) {
  return 2.0 * static_cast<double>(call.inputs[0].shape.size()) *
         static_cast<double>(call.inputs[1].shape[0]);
}

// Two products and, if it gives the loss, the logits. Otherwise these are computed again.
double GradFlops(const OpCall& call) {
  const bool gives_loss = call.outputs[2].present() || call.outputs[3].present();
  return (gives_loss ? 3.0 : 2.0) * Flops(call);
}

Attributes With(double scale, double z_loss, double label_smoothing, int64_t first = 0) {
  return {
      {"scale", scale}, {"z_loss", z_loss}, {"label_smoothing", label_smoothing}, {"first", first}};
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType dtype : kActivationTypes) {
    const std::string name = DTypeName(dtype);
    const std::vector<TensorType> small = {
        {dtype, {2, 3, 19}}, F32({13, 19}), I32({2, 3}), F32({1})};
    const std::vector<TensorType> wide = {
        {dtype, {3, 7, 67}}, F32({301, 67}), I32({3, 7}), F32({1})};
    cases.push_back({name, With(1.0, 0.0, 0.0), small, FillBetween(0, 12)});
    cases.push_back({name + "_scale", With(0.12, 1e-2, 0.0), wide, FillBetween(-1, 300)});
    cases.push_back({name + "_smooth", With(0.2, 1e-3, 0.1), small, FillBetween(1, 12)});
    cases.push_back({name + "_classes", With(0.2, 1e-3, 0.1, 1), small, FillBetween(-1, 13)});
    cases.push_back({name + "_padded", With(0.3, 0.0, 0.2), small, FillBetween(-2, 2)});
  }
  return cases;
}

std::vector<TensorType> GradInfer(const Attributes&, std::span<const TensorType> inputs) {
  CheckOperands("linear_cross_entropy_grad", inputs,
                {{"hidden", kActivation, 3},
                 {"embedding", kParameter, 2},
                 {"targets", kInteger, 2},
                 {"inverse_denominator", kParameter, 1},
                 {"dloss", kParameter, 1}});
  CheckTokens("linear_cross_entropy_grad", inputs);
  CheckShape("linear_cross_entropy_grad", "dloss", inputs[4], {1});
  return {inputs[0], inputs[1], F32({1}), F32({loss_statistics::kSlots})};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const auto hidden = inputs[0].numbers, embedding = inputs[1].numbers;
  const auto targets = inputs[2].integers;
  const auto &dhidden = outputs[0], &dembedding = outputs[1];
  const double scale = call.attributes.Number("scale"), z_loss = call.attributes.Number("z_loss");
  const double factor = inputs[3].numbers[0] * inputs[4].numbers[0];
  const int64_t width = inputs[0].dim(2);
  Token token(call.attributes, inputs[0], inputs[1]);
  LossSums sums(z_loss);
  for (int64_t i = 0; i < static_cast<int64_t>(targets.size()); ++i) {
    if (!token.Load(i, targets[i])) continue;
    const double log_z = token.LogSum();
    sums.Add(token, log_z);
    for (int64_t v = 0; v < token.vocabulary(); ++v) {
      const double p = std::exp(token.logit(v) - log_z);
      const double dlogit = scale * factor * (p * (1.0 + 2.0 * z_loss * log_z) - token.wanted(v));
      for (int64_t d = 0; d < width; ++d) {
        const int64_t h = i * width + d, e = v * width + d;
        if (dhidden.present()) dhidden.numbers[h] += dlogit * embedding[e];
        if (dembedding.present()) dembedding.numbers[e] += dlogit * hidden[h];
      }
    }
  }
  sums.Store(inputs[3].numbers[0], outputs[2], outputs[3]);
}

std::vector<OpCase> GradCases() {
  std::vector<OpCase> cases = Cases();
  for (OpCase& sample : cases) sample.inputs.push_back(F32({1}));
  return cases;
}

}  // namespace

Op op_linear_cross_entropy() {
  return {
      .infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases, .flops = Flops};
}

Op op_linear_cross_entropy_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases, .flops = GradFlops};
}

}  // namespace syntra
