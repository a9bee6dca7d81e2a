// SPDX-License-Identifier: Apache-2.0
// The gradients of whole models by the reference, which other backends are compared with.
#include <gtest/gtest.h>

#include "kernels/backend.h"
#include "model/model_trial.h"
#include "program/finite_differences.h"

namespace syntra {
namespace {

// A hidden layer without kinks, which central differences would step over.
void ExpectGradientsOf(ModelSetting setting) {
  setting.config.mutable_feed_forward()->set_activation(FeedForwardConfig::GATED_GELU);
  const TrialBatch batch = FittedBatch(setting.config, RandomBatch({2, 9, 6}, 32));
  ModelTrial trial(setting, batch, ReferenceBackend());
  ExpectGradients(trial.executable(), trial.memory(), trial.parameters());
}

class ModelGradients : public testing::TestWithParam<std::pair<const std::string, ModelConfig>> {};

TEST_P(ModelGradients, AgreeWithCentralDifferences) {
  ExpectGradientsOf(
      {.config = GetParam().second, .loss = {.z_loss = 1e-2, .label_smoothing = 0.1}});
}

INSTANTIATE_TEST_SUITE_P(Model, ModelGradients, testing::ValuesIn(TrialModels()),
                         [](const auto& info) { return info.param.first; });

class DropoutGradients : public testing::TestWithParam<DropoutNoise> {};

// The backward pass masks what the forward pass masked.
TEST_P(DropoutGradients, AgreeWithCentralDifferences) {
  for (const TrainConfig::Recompute recompute : {TrainConfig::NOTHING, TrainConfig::LAYERS}) {
    ModelSetting setting = DropoutSetting(GetParam());
    setting.recompute = recompute;
    ExpectGradientsOf(setting);
  }
}

INSTANTIATE_TEST_SUITE_P(Model, DropoutGradients, testing::Values(SHARED_OVER_LENGTH, PER_ELEMENT),
                         [](const auto& info) { return DropoutNoise_Name(info.param); });

}  // namespace
}  // namespace syntra
