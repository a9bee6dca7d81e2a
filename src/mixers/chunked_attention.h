// SPDX-License-Identifier: Apache-2.0
// Attention without a softmax, whose cost grows with the length and not with its square:
//   y_i = sum_j decay^|i - j| (q_i . k_j) v_j
// over all j or, if causal, over j <= i: linear attention (Katharopoulos et al. 2020, equations 5
// and 9) and retention (Sun et al. 2023, equation 5). The positions are taken in chunks: products
// of queries and keys inside a chunk, sums of k v^T between chunks (Sun et al. 2023, equation 7).
#pragma once

#include <vector>

#include "mixers/mixer.h"

namespace syntra {

struct ChunkedAttention {
  int64_t heads = 1;
  std::vector<double> decay;  // of each head, in (0, 1]; empty: 1
  bool causal = false;
  int64_t chunk_length = 64;  // positions; the result does not depend on it
};

struct ChunkedOperands {
  Value query, key;  // [B, T, H * F]; keys are zero at padding
  Value value;       // [B, T, H * K]
};

// Returns y, [B, T, H * K], in f32, since the terms of a sum may nearly cancel.
Value Attend(const Scope& scope, const ChunkedAttention& attention,
             const ChunkedOperands& operands);
// Computes one position of the causal form, f32 [B, 1, H * K]. The state `sums` is kept from step
// to step.
Value AttendStep(const Scope& scope, const ChunkedAttention& attention,
                 const ChunkedOperands& operands, const MixerState& state);

// As Attend, but in the type of the queries, without decay, and divided by
// epsilon + sum_j q_i . k_j, so that the weights of the values add up to one.
Value AttendNormalised(const Scope& scope, const ChunkedAttention& attention,
                       const ChunkedOperands& operands, double epsilon);
Value AttendNormalisedStep(const Scope& scope, const ChunkedAttention& attention,
                           const ChunkedOperands& operands, double epsilon,
                           const MixerState& state);

}  // namespace syntra
