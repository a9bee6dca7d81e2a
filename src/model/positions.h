// SPDX-License-Identifier: Apache-2.0
// Absolute positions: a vector for each position, added to the embedded tokens.
#pragma once

#include "base/field_report.h"
#include "nn/scope.h"

namespace syntra {

// Adds vectors of the kind that `config` sets to embedded [B, T, D]. `positions`, i32 [B, T] or
// [1, T], are below `length`, the longest sequence that the program is for. The parameters of
// learned vectors are in `root`: encoder and decoder have them in common.
Value AddPositions(const Scope& root, const PositionConfig& config, Value embedded, Value positions,
                   int64_t length);

// The same for a decode step: embedded [B, 1, D], all rows at one position, i32 [1].
Value AddPosition(const Scope& root, const PositionConfig& config, Value embedded, Value position,
                  int64_t length);

// `report` is that of ModelConfig.
void ValidatePositions(const ModelConfig& model, const FieldReport& report);

}  // namespace syntra
