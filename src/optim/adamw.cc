// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov and Hutter 2019), plain or with each tensor's update scaled by its RMS (as in
// nanoT5).
#include <cmath>

#include "optim/optimizers.h"

namespace syntra {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimizerConfig& config, const ParameterStore& parameters, ElementRange range)
      : Optimizer(config.clip_norm(), parameters, range), config_(config) {
    for (const Parameter& parameter : parameters.all()) {
      if (!parameter.trainable) continue;
      AddState(parameter, "m", parameter.shape);
      AddState(parameter, "v", parameter.shape);
    }
  }

  std::vector<float> Hyper(const UpdateFacts& facts) const override {
    const double t = static_cast<double>(facts.step) + 1;
    return {static_cast<float>(facts.rate), 1.0f,
            static_cast<float>(1 - std::pow(config_.beta1(), t)),
            static_cast<float>(1 - std::pow(config_.beta2(), t)),
            static_cast<float>(config_.weight_decay())};
  }

 protected:
  int64_t hyper_size() const override { return 5; }

  void RecordUpdate(ProgramBuilder& builder, const Parameter& parameter,
                    Value hyper) const override {
    builder.RecordUpdate("adamw",
                         {{"beta1", config_.beta1()},
                          {"beta2", config_.beta2()},
                          {"epsilon", config_.epsilon()},
                          {"rms_scaled", config_.kind() == OptimizerConfig::ADAMW_RMS}},
                         {builder.GradientOf(parameter), hyper},
                         {builder.Parameter(parameter), StateValue(builder, parameter, "m"),
                          StateValue(builder, parameter, "v")});
  }

 private:
  OptimizerConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdamW(const OptimizerConfig& config,
                                     const ParameterStore& parameters, ElementRange range) {
  return std::make_unique<AdamW>(config, parameters, range);
}

}  // namespace syntra
