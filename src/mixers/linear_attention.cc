// SPDX-License-Identifier: Apache-2.0
// Linear attention (Katharopoulos et al. 2020): the features of queries and keys are elu(x) + 1
// (equation 7).
#include "mixers/feature_attention.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

class LinearAttention final : public FeatureAttention {
 public:
  explicit LinearAttention(const LinearAttentionConfig& config)
      : FeatureAttention({.feature_field = "head_size",
                          .heads = config.heads(),
                          .head_size = config.head_size(),
                          .features = config.head_size(),
                          .chunk_length = config.chunk_length()}) {}

 private:
  Value Features(const Scope& scope, const Rows& rows) const override {
    return Activation(scope, "elu_plus_one", rows.x);
  }
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_linear_attention(const MixerConfig& config) {
  return std::make_unique<LinearAttention>(config.linear_attention());
}

}  // namespace syntra
