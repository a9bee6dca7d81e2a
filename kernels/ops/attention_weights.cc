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
  const Shape rows = GetOp("attention").infer(attributes, inputs)[kLogSumExp].shape;
  return {{DType::kF32, {rows[0], rows[1], rows[2], inputs[kValue].shape[1]}}};
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
