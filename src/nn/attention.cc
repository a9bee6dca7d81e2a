// SPDX-License-Identifier: Apache-2.0
#include "nn/attention.h"

#include "kernels/attention_call.h"

namespace syntra {

namespace {

std::vector<Value> InputsOf(const AttentionOperands& operands, const AttentionMask& mask) {
  std::vector<Value> inputs(attention::kInputCount);
  inputs[attention::kQuery] = operands.query;
  inputs[attention::kKey] = operands.key;
  inputs[attention::kValue] = operands.value;
  inputs[attention::kU] = operands.feature;
  inputs[attention::kPositions] = operands.feature_positions;
  inputs[attention::kA] = operands.outer_a;
  inputs[attention::kB] = operands.outer_b;
  inputs[attention::kTable] = operands.table;
  inputs[attention::kBias] = operands.relative_bias;
  inputs[attention::kQuerySegments] = mask.query_segments;
  inputs[attention::kKeySegments] = mask.key_segments;
  inputs[attention::kQueryPositions] = mask.query_positions;
  inputs[attention::kKeyPositions] = mask.key_positions;
  inputs[attention::kKeyBlocks] = mask.key_blocks;
  inputs[attention::kPrefixEnds] = mask.prefix_ends;
  inputs[attention::kQueryStart] = mask.query_start;
  return inputs;
}

Attributes CallAttributes(int64_t heads, const AttentionOperands& operands,
                          const AttentionMask& mask) {
  const attention::Pattern pattern{mask.causal, mask.window, mask.dilation, mask.globals};
  return attention::AttributesOf(heads, pattern, mask.block, operands.bias_reach);
}

}  // namespace

Value Attention(Recorder& recorder, int64_t heads, const AttentionOperands& operands,
                const AttentionMask& mask) {
  return RecordOne(recorder, "attention", CallAttributes(heads, operands, mask),
                   InputsOf(operands, mask));
}

Value Attention(const Scope& scope, int64_t heads, const AttentionOperands& operands,
                const AttentionMask& mask) {
  if (scope.recording().weights) {
    const Value weights = scope.One("attention_weights", CallAttributes(heads, operands, mask),
                                    InputsOf(operands, mask));
    const Shape& shape = scope.TypeOf(weights).shape;
    // Without segments the keys may be anything, such as Linformer's summaries.
    const bool within_sequence =
        mask.query_segments && mask.query_segments == mask.key_segments && shape[2] == shape[3];
    scope.recording().weights->push_back({scope.prefix(), within_sequence, weights});
  }
  return Attention(scope.program(), heads, operands, mask);
}

}  // namespace syntra
