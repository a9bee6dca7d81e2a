// SPDX-License-Identifier: Apache-2.0
// Keys and values that several heads share: multi-query attention (Shazeer 2019) and grouped-query
// attention (Ainslie et al. 2023).
#pragma once

#include "base/field_report.h"
#include "nn/scope.h"

namespace syntra {

// Heads that keys and values have, by a message with fields `heads` and `key_value_heads`.
template <typename Config>
int64_t KeyValueHeads(const Config& config) {
  return config.key_value_heads() == 0 ? config.heads() : config.key_value_heads();
}

// Reports heads that cannot be shared out; `report` is that of the message.
void ValidateKeyValueHeads(const FieldReport& report, int64_t heads, int64_t key_value_heads);

// x [B, S, G * K] of G heads as [B, S, H * K]: neighbours of the H heads have the same columns.
Value RepeatHeads(const Scope& scope, Value x, int64_t key_value_heads, int64_t heads);

}  // namespace syntra
