// SPDX-License-Identifier: Apache-2.0
#include "mixers/feature_attention.h"

#include "mixers/projections.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// Added to the sums that are divided by, as in the code of linear attention's authors: a row that
// is all padding has sums of zero.
constexpr double kFeatureEpsilon = 1e-6;

}  // namespace

MixerTraits FeatureAttention::traits() const {
  MixerTraits traits{.causal = true, .sees_order = false};
  for (const auto& [columns, name] : {std::pair{sizes_.head_size, "head_size"},
                                      std::pair{sizes_.features, sizes_.feature_field}}) {
    traits.per_token.push_back({sizes_.heads * columns, {"heads", name}});
  }
  return traits;
}

Value FeatureAttention::Build(const Scope& scope, const MixerInput& input) const {
  ChunkedOperands operands = Operands(scope, input.x, input.causal ? Value{} : input.segments);
  operands.key = WithoutPadding(scope, operands.key, input.segments);
  return ProjectOutput(scope,
                       AttendNormalised(scope, Attention(input.causal), operands, kFeatureEpsilon),
                       scope.TypeOf(input.x).shape[2]);
}

Value FeatureAttention::BuildStep(const Scope& scope, const MixerStep& step) const {
  return ProjectOutput(scope,
                       AttendNormalisedStep(scope, Attention(true), Operands(scope, step.x, {}),
                                            kFeatureEpsilon, step.state),
                       scope.TypeOf(step.x).shape[2]);
}

ChunkedOperands FeatureAttention::Operands(const Scope& scope, Value x, Value all_read) const {
  const int64_t inner = sizes_.heads * sizes_.head_size;
  return {.query = Features(scope, {Project(scope, "query", x, inner), Side::kQuery, {}}),
          .key = Features(scope, {Project(scope, "key", x, inner), Side::kKey, all_read}),
          .value = Project(scope, "value", x, inner)};
}

ChunkedAttention FeatureAttention::Attention(bool causal) const {
  return {.heads = sizes_.heads, .causal = causal, .chunk_length = sizes_.chunk_length};
}

}  // namespace syntra
