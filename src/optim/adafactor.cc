// SPDX-License-Identifier: Apache-2.0
// Adafactor (Shazeer and Stern 2018) as in Mesh TensorFlow: second moments are factored over the
// two largest axes, updates are clipped by their RMS, the learning rate is relative to each
// tensor's RMS, and there is no momentum.
#include <algorithm>
#include <cmath>

#include "kernels/math/hyperparameters.h"
#include "optim/optimizer.h"

namespace syntra {
namespace {

// The two factored axes, or -1 if the second moment is not factored.
struct Factors {
  int row_axis = -1;     // D0, averaged away into `row`
  int column_axis = -1;  // D1, averaged away into `column`
};

class Adafactor final : public Optimizer {
 public:
  Adafactor(const OptimizerConfig& config, const ParameterStore& parameters,
            std::span<const ElementRange> parts)
      : Optimizer(config.clip_norm(), parameters, parts), config_(config) {
    for (const Parameter& parameter : parameters.all()) {
      if (!parameter.trainable) continue;
      const Factors factors = FactorsOf(parameter.shape);
      if (factors.row_axis < 0) {
        AddState(parameter, "full", parameter.shape);
      } else {
        AddState(parameter, "row", parameter.shape.Without(factors.row_axis));
        AddState(parameter, "column", parameter.shape.Without(factors.column_axis));
      }
    }
  }

  std::vector<float> Hyper(const UpdateFacts& facts) const override {
    const double t = static_cast<double>(facts.step) + 1;
    const double beta2 = 1 - std::pow(t, -config_.decay_exponent());
    std::vector<float> values(hyper::kAdafactorSlots);
    values[hyper::kRate] = static_cast<float>(facts.rate);
    values[hyper::kGradientScale] = 1;
    values[hyper::kBeta2] = static_cast<float>(beta2);
    return values;
  }

 protected:
  void RecordUpdate(ProgramBuilder& builder, const Parameter& parameter,
                    std::span<const Value> state, Value hyper) const override {
    const Factors factors = FactorsOf(parameter.shape);
    std::vector<Value> outputs{builder.Parameter(parameter)};
    outputs.insert(outputs.end(), state.begin(), state.end());
    builder.RecordUpdate("adafactor",
                         {{"row_axis", int64_t{factors.row_axis}},
                          {"column_axis", int64_t{factors.column_axis}},
                          {"clip_threshold", config_.clip_threshold()}},
                         {builder.GradientOf(parameter), hyper}, outputs);
  }

 private:
  // The two largest axes, if both have at least min_factored_size. Of equal axes the first counts
  // as larger.
  Factors FactorsOf(const Shape& shape) const {
    if (shape.rank() < 2) return {};
    std::vector<int> axes(shape.rank());
    for (int i = 0; i < shape.rank(); ++i) axes[i] = i;
    std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return shape[a] > shape[b]; });
    if (shape[axes[1]] < config_.min_factored_size()) return {};
    return {axes[0], axes[1]};
  }

  OptimizerConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> optimizer_adafactor(const OptimizerConfig& config,
                                               const ParameterStore& parameters,
                                               std::span<const ElementRange> parts) {
  return std::make_unique<Adafactor>(config, parameters, parts);
}

}  // namespace syntra
