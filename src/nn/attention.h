// SPDX-License-Identifier: Apache-2.0
// Records the fused `attention` op with named operands. Its contract is in kernels/README.md,
// section "attention".
#pragma once

#include "nn/scope.h"

namespace syntra {

// The terms whose sum is the score of query i and key j, and the values that the scores weigh. Both
// operands of a pair must be present or absent; an absent term adds nothing. B examples, T queries,
// S keys, H heads of K columns.
struct AttentionOperands {
  Value query, key;                  // q_i . k_j; [B, T, H * K] and [B, S, H * K]
  Value feature, feature_positions;  // u_i . p_j; [B, T, H * F] and f32 [F or H, F, N], N >= S
  Value outer_a, outer_b;            // a_i[j mod Na] * b_i[j div Na]; [B, T, H * Na or H * Nb]
  Value table;                       // R[i, j]; f32 [H or 1, N or 1, N]
  Value relative_bias;               // bias of j - i; f32 [H, T + S - 1]
  // With a reach r > 0: its entries for j - i >= r are equal, and so are those for j - i <= -r.
  int64_t bias_reach = 0;
  Value value;  // [B, S, H * K]; never absent
};

// Which keys a query may read, and which rows of the learned operands are a query's and a key's.
struct AttentionMask {
  // i32 [B, T] and [B, S]: a query reads keys whose segment equals its own and is not 0. Absent:
  // all keys.
  Value query_segments, key_segments;
  // i32 [B, T] and [B, S]: learned operands are read by these. Absent: by row.
  Value query_positions, key_positions;
  // i32 [1]: the row of the first query in incremental decoding. Absent: 0.
  Value query_start;
  // A query reads only keys up to its own row.
  bool causal = false;
  // With a window w > 0: query i reads keys that are fewer than w steps of `dilation` rows away,
  // and those of the first `globals` rows, which themselves read every key. 0: no window.
  int64_t window = 0, dilation = 1, globals = 0;
  // The numbers of the blocks of `block` rows that each block of queries reads, i32 [H or 1, blocks
  // of queries, blocks read]. A number that no block has stands for none. Absent: every key.
  Value key_blocks = {};
  int64_t block = 0;
  // i32 [B, T], if causal: a query also reads the keys before this row. Absent: no others.
  Value prefix_ends = {};

  // The mask of self-attention: the positions of one sequence read each other.
  static AttentionMask Within(Value segments, Value positions, bool causal) {
    return {.query_segments = segments,
            .key_segments = segments,
            .query_positions = positions,
            .key_positions = positions,
            .causal = causal};
  }
};

// The weighted values, [B, T, H * K].
Value Attention(Recorder& recorder, int64_t heads, const AttentionOperands& operands,
                const AttentionMask& mask);
// Attention in a layer, whose weights are recorded too if the recording shows them.
Value Attention(const Scope& scope, int64_t heads, const AttentionOperands& operands,
                const AttentionMask& mask);

}  // namespace syntra
