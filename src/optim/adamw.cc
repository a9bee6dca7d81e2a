// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov and Hutter 2019), plain or with each tensor's update scaled by its RMS (as in
// nanoT5).
#include <cmath>

#include "kernels/math/hyperparameters.h"
#include "optim/optimizer.h"

namespace syntra {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimizerConfig& config, const ParameterStore& parameters,
        std::span<const ElementRange> parts)
      : Optimizer(config.clip_norm(), parameters, parts), config_(config) {
    for (const Parameter& parameter : parameters.all()) {
      if (!parameter.trainable) continue;
      AddState(parameter, "m", parameter.shape);
      AddState(parameter, "v", parameter.shape);
    }
  }

  std::vector<float> Hyper(const UpdateFacts& facts) const override {
    const double t = static_cast<double>(facts.step) + 1;
    std::vector<float> values(hyper::kAdamWSlots);
    values[hyper::kRate] = static_cast<float>(facts.rate);
    values[hyper::kGradientScale] = 1;
    values[hyper::kBias1] = static_cast<float>(1 - std::pow(config_.beta1(), t));
    values[hyper::kBias2] = static_cast<float>(1 - std::pow(config_.beta2(), t));
    values[hyper::kWeightDecay] = static_cast<float>(config_.weight_decay());
    return values;
  }

 protected:
  void RecordUpdate(ProgramBuilder& builder, const Parameter& parameter,
                    std::span<const Value> state, Value hyper) const override {
    builder.RecordUpdate("adamw",
                         {{"beta1", config_.beta1()},
                          {"beta2", config_.beta2()},
                          {"epsilon", config_.epsilon()},
                          {"rms_scaled", config_.kind() == OptimizerConfig::ADAMW_RMS}},
                         {builder.GradientOf(parameter), hyper},
                         {builder.Parameter(parameter), state[0], state[1]});
  }

 private:
  OptimizerConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> optimizer_adamw(const OptimizerConfig& config,
                                           const ParameterStore& parameters,
                                           std::span<const ElementRange> parts) {
  return std::make_unique<AdamW>(config, parameters, parts);
}

}  // namespace syntra
