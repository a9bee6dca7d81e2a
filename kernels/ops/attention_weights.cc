// SPDX-License-Identifier: Apache-2.0
// The weights of `attention` with the same inputs and attributes, of which the value gives only its
// shape: y[b,h,i,j] = softmax_j(S[b,h,i,:])_j, f32 [B, H, T, S], 0 where a query may not read. For
// people who want to see them; no gradient.
#include "kernels/ops/attention.h"

namespace syntra {
namespace attention {
namespace {

std::vector<TensorType> InferWeights(const Attributes& attributes,
                                     std::span<const TensorType> inputs) {
  SYNTRA_CHECK(inputs.size() == kInputCount, "attention_weights takes {} inputs, not {}",
               static_cast<int>(kInputCount), inputs.size());
  const Dimensions z = DimensionsOf(attributes, inputs);
  return {{DType::kF32, {z.batch, z.heads, z.queries, z.keys}}};
}

OperandSet WeightsColumns(const OpCall& call) { return GetOp("attention").takes_columns(call); }

}  // namespace
}  // namespace attention

Op op_attention_weights() {
  return {.infer = &attention::InferWeights,
          .reference = &attention::ReferenceWeights,
          .cases = &attention::Cases,
          .takes_columns = &attention::WeightsColumns};
}

}  // namespace syntra
