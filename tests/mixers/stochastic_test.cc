// SPDX-License-Identifier: Apache-2.0
// Mixers that draw random numbers in training: gradients and means of the draws.
#include <gtest/gtest.h>

#include "kernels/tested.h"
#include "mixers/mixer_cases.h"
#include "mixers/mixer_trial.h"
#include "program/finite_differences.h"

namespace syntra {
namespace {

TEST(StochasticMixers, DrawsHaveTheirGradients) {
  for (const MixerCase& mixer : MixerCases()) {
    const MixerTraits traits = MakeMixer(ConfigOf(mixer))->traits();
    if (!traits.stochastic) continue;
    const testing::ScopedTrace trace(__FILE__, __LINE__, mixer.name);
    for (const bool recompute : {false, true}) {
      MixerSetting setting{.config = ConfigOf(mixer), .causal = traits.causal};
      setting.recompute = recompute;
      setting.keys = {5, 9, 7, 9};
      MixerTrial reference(setting, ReferenceBackend()), fast(setting, FastBackend());
      ExpectGradients(reference.executable(), reference.memory(), reference.parameters());
      reference.Run();
      fast.Run();
      EXPECT_LT(LargestError(fast.Y(), reference.Y()), 2e-6);
    }
  }
}

// A convolution's output is linear in the weights of its taps, of which dropout keeps the mean.
TEST(StochasticMixers, DropConnectKeepsTheMean) {
  for (const char* kind : {"light_conv", "dynamic_conv"}) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, kind);
    const std::string text = std::string(kind) + " { kernel_size: 5 heads: 5 weight_dropout: 0.4 }";
    MixerSetting setting{.config = ConfigOf({"", text})};
    const std::vector<double> exact = OutputOf(setting, FastBackend());
    setting.keys = {0, 0, 0, 0};
    MixerTrial trial(setting, FastBackend());
    constexpr int kRuns = 200;
    std::vector<double> sum(exact.size()), squares(exact.size());
    for (int32_t run = 0; run < kRuns; ++run) {
      const std::vector<int32_t> keys = {2 * run, 9, 2 * run + 1, 9};
      trial.executable().SetInput("dropout_keys", std::span<const int32_t>(keys));
      trial.Run();
      const std::vector<double> y = trial.Y();
      for (size_t i = 0; i < y.size(); ++i) {
        sum[i] += y[i] - exact[i];
        squares[i] += (y[i] - exact[i]) * (y[i] - exact[i]);
      }
    }
    for (size_t i = 0; i < sum.size(); ++i) {
      EXPECT_GT(squares[i], 0.01 * kRuns) << i;
      EXPECT_LE(std::abs(sum[i]), 5 * std::sqrt(squares[i])) << i;  // deviations of the sum
    }
  }
}

}  // namespace
}  // namespace syntra
