// SPDX-License-Identifier: Apache-2.0
// Absolute positions: a vector for each position, which is added to embedded tokens or to states.
#pragma once

#include "base/field_report.h"
#include "nn/scope.h"

namespace syntra {

// The vectors of positions i32 [B, T] or [1, T], which are below `length`, the longest sequence
// that the program is for: [B, T, width] or [1, T, width]. The parameters of learned vectors are in
// `root`: encoder and decoder have them in common.
Value PositionVectors(const Scope& root, const ModelConfig& model, Value positions, int64_t length);

// The vector of a decode step, in which all rows are at one position, i32 [1]: [1, width].
Value PositionVector(const Scope& root, const ModelConfig& model, Value position, int64_t length);

// `report` is that of ModelConfig.
void ValidatePositions(const ModelConfig& model, const FieldReport& report);

}  // namespace syntra
