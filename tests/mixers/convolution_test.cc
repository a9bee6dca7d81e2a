// SPDX-License-Identifier: Apache-2.0
// How lightweight and dynamic convolutions start. The other tests set all parameters.
#include <gtest/gtest.h>

#include <cmath>

#include "mixers/mixer_trial.h"

namespace syntra {
namespace {

constexpr int64_t kTaps = 7, kFilters = 2;

Initializer InitializerOf(const std::string& mixer, const std::string& form,
                          const std::string& parameter) {
  const std::string heads = form == "FAIRSEQ" ? " heads: 2" : "";
  const MixerCase trial{form, mixer + " { form: " + form + heads + " }"};
  const MixerTrial recorded({.config = ConfigOf(trial)}, ReferenceBackend());
  return recorded.parameters().Find(parameter)->initializer;
}

void ExpectGlorot(const Initializer& initializer, int64_t in, int64_t out) {
  EXPECT_EQ(initializer.kind, Initializer::Kind::kUniform);
  EXPECT_DOUBLE_EQ(initializer.scale, std::sqrt(6.0 / static_cast<double>(in + out)));
}

// xavier_uniform_ of their linear layers and of the filters.
TEST(ConvolutionOfFairseq, StartsAsTheAuthors) {
  for (const char* mixer : {"light_conv", "dynamic_conv"}) {
    SCOPED_TRACE(mixer);
    ExpectGlorot(InitializerOf(mixer, "FAIRSEQ", "input"), kTrialWidth, 2 * kTrialWidth);
    ExpectGlorot(InitializerOf(mixer, "FAIRSEQ", "output"), kTrialWidth, kTrialWidth);
  }
  ExpectGlorot(InitializerOf("light_conv", "FAIRSEQ", "filters"), kTaps, kFilters * kTaps);
  ExpectGlorot(InitializerOf("dynamic_conv", "FAIRSEQ", "filters"), kTrialWidth, kFilters * kTaps);
}

TEST(ConvolutionOfMesh, StartsWithNormalNumbers) {
  for (const char* parameter : {"input", "pointwise", "output", "filters"}) {
    SCOPED_TRACE(parameter);
    const Initializer initializer = InitializerOf("dynamic_conv", "MESH", parameter);
    const bool filters = parameter == std::string("filters");
    EXPECT_EQ(initializer.kind, Initializer::Kind::kNormal);
    EXPECT_DOUBLE_EQ(initializer.scale,
                     1 / std::sqrt(static_cast<double>(kTrialWidth) * (filters ? kTaps : 1)));
  }
}

}  // namespace
}  // namespace syntra
