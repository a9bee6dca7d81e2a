// SPDX-License-Identifier: Apache-2.0
// Sequences in blocks of positions, and attention of some of their rows.
#pragma once

#include "nn/attention.h"
#include "nn/scope.h"

namespace syntra {

// x [B, T, ..] with zeros after T up to a multiple of `size`.
Value PadToMultiple(const Scope& scope, Value x, int64_t size);

// Segments i32 [B, T] as f32 [B, T, 1], so that they move as keys and values do, and what became
// of them as i32 [B, T] again.
Value AsRows(const Scope& scope, Value segments);
Value AsSegments(const Scope& scope, Value rows);

// Attention of the queries in rows [from, to), [B, to - from, H * K]; operands and segments are
// those of all rows. Not causal unless `from` is 0.
Value AttendFrom(const Scope& scope, int64_t heads, AttentionOperands operands, AttentionMask mask,
                 int64_t from, int64_t to);

}  // namespace syntra
