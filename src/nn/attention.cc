// SPDX-License-Identifier: Apache-2.0
#include "nn/attention.h"

#include "kernels/ops/attention.h"

namespace syntra {

Value Attention(Recorder& recorder, int64_t heads, const AttentionOperands& operands,
                const AttentionMask& mask) {
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
  const attention::Pattern pattern{mask.causal, mask.window, mask.dilation, mask.globals};
  return RecordOne(recorder, "attention",
                   attention::AttributesOf(heads, pattern, mask.block, operands.bias_reach),
                   std::move(inputs));
}

}  // namespace syntra
