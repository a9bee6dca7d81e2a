// SPDX-License-Identifier: Apache-2.0
// T5's relative position bias (Raffel et al. 2020, section 2.1): a score for each head and bucket
// of distances between query and key.
#pragma once

#include "base/field_report.h"
#include "nn/scope.h"

namespace syntra {

// The queries and keys that a bias is for.
struct BiasExtent {
  int64_t queries = 0, keys = 0;  // T, S
  bool causal = false;            // keys are never after their queries
  Value query_start;              // the place of the first query, i32 [1]; absent: 0
};

// f32 [heads, T + S - 1]. The table is the parameter `name` of `scope`, [heads, buckets].
Value RelativeBias(const Scope& scope, const std::string& name, const RelativeBiasConfig& config,
                   int64_t heads, const BiasExtent& extent);

// The distance from which a bias without query_start has equal entries (AttentionOperands).
int64_t BiasReach(const RelativeBiasConfig& config, bool causal);

void ValidateRelativeBias(const RelativeBiasConfig& config, const FieldReport& report);

}  // namespace syntra
