// SPDX-License-Identifier: Apache-2.0
// A call of `attention` or `attention_grad`: operand numbers and dimensions. The contract is in
// kernels/README.md, section "attention".
#pragma once

#include <span>

#include "base/divide.h"
#include "kernels/math/attention_pattern.h"
#include "kernels/op_call.h"

namespace syntra::attention {

enum Input {
  kQuery,
  kKey,
  kValue,
  kU,
  kPositions,
  kA,
  kB,
  kTable,
  kBias,
  kQuerySegments,
  kKeySegments,
  kQueryPositions,
  kKeyPositions,
  kKeyBlocks,
  kPrefixEnds,
  kQueryStart,
  kInputCount,
};

enum Output { kY, kLogSumExp, kOutputCount };

// The inputs of attention_grad: the first kSharedInputs inputs of attention, then these.
inline constexpr int kSharedInputs = kPrefixEnds + 1;
enum GradientInput { kGivenY = kSharedInputs, kGivenLogSumExp, kGivenDY, kGradientInputCount };
// Output g is the gradient of input g.
inline constexpr int kGradientOutputCount = kBias + 1;

struct Dimensions {
  int64_t batch, queries, keys, heads;  // B, T, S, H
  int64_t head_size;                    // K
  // Elements from one row of these operands to the next; 0 without them.
  int64_t query_pitch = 0, key_pitch = 0, value_pitch = 0;
  int64_t features = 0;            // F, 0 without u
  int64_t a_size = 0, b_size = 0;  // Na, Nb
  int64_t position_extent = 0;     // N of positions
  int64_t table_heads = 0, table_queries = 0, table_keys = 0;
  bool positions_per_head = false;
  Pattern pattern;
  // With key blocks: the rows of a block, the blocks that a block of queries reads, and 1 or H.
  int64_t block = 0, blocks_read = 0, block_heads = 0;
  int64_t bias_reach = 0;

  // Whether more than `causal` and segments decides which keys a query reads.
  bool IsSparse() const { return pattern.is_window() || block > 0; }
  int64_t QueryBlocks() const { return DivideUp(queries, block); }

  // The entries of a bias line whose gradients are summed to entry k of dbias. With a bias_reach,
  // the entry at the reach gets its own and all beyond; entries beyond get none.
  struct Entries {
    int64_t first, end;
  };
  Entries EntriesOf(int64_t k) const;
};

// The attributes of a call. `block`: the rows of a block where there are key blocks, else 0.
Attributes AttributesOf(int64_t heads, const Pattern& pattern, int64_t block = 0,
                        int64_t bias_reach = 0);

// `inputs`, those of attention or of attention_grad, keep the contract.
Dimensions DimensionsOf(const Attributes& attributes, std::span<const TensorType> inputs);

}  // namespace syntra::attention
