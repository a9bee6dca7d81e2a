// SPDX-License-Identifier: Apache-2.0
// Linformer (Wang et al. 2020, equation 7): attention to keys and values whose positions are
// projected to a fixed number of rows. A row holds parts of all positions, so nothing is causal.
#include <cmath>

#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

class Linformer final : public TokenMixer {
 public:
  explicit Linformer(const LinformerConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t heads = config_.heads(), size = config_.head_size();
    return {.limits = {LengthLimit::OfMaxLength(config_.max_length())},
            .per_token = {{heads * size, {"heads", "head_size"}}}};
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const int64_t width = scope.TypeOf(input.x).shape[2];
    const int64_t inner = int64_t{config_.heads()} * config_.head_size();
    const Value x = WithoutPadding(scope, input.x, input.segments);
    const Value value = Projected(scope, config_.share_values() ? "project_key" : "project_value",
                                  Project(scope, "value", x, inner));
    const Value mixed =
        Attention(scope, config_.heads(),
                  {.query = ProjectQuery(scope, HeadsOf(config_), input.x),
                   .key = Projected(scope, "project_key", Project(scope, "key", x, inner)),
                   .value = HeadDropout(scope, value, config_.dropout(), config_.head_size())},
                  {});
    return ProjectOutput(scope, mixed, width);
  }

 private:
  // The rows of x [B, T, H * K] as k rows. First values as in fairseq's linformer.
  Value Projected(const Scope& scope, const char* name, Value x) const {
    const int64_t rows = config_.projected_length(), n = config_.max_length();
    const Initializer initializer =
        Initializer::Uniform(std::sqrt(3.0 / static_cast<double>(rows + n)));
    const Shape shape = config_.share_heads() ? Shape{rows, n} : Shape{config_.heads(), rows, n};
    const Value matrix = scope.Parameter(name, shape, initializer);
    const int64_t axis = config_.share_heads() ? 1 : 2, length = scope.TypeOf(x).shape[1];
    return scope.One("shared_matmul", {{"transpose", false}},
                     {First(scope, matrix, axis, length), x});
  }

  LinformerConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_linformer(const MixerConfig& config) {
  return std::make_unique<Linformer>(config.linformer());
}

}  // namespace syntra
