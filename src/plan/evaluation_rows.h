// SPDX-License-Identifier: Apache-2.0
// How many rows an evaluation on the validation split computes together.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

// The rows of the pieces in which a batch is computed. The number is fixed, since the sums of a
// piece are rounded to fp32: if it depended on the number of ranks, so would the result.
inline constexpr int64_t kPieceRows = 16;

// evaluation.batch_size, or that of training where it is not set.
int64_t EvaluationBatchRows(const Config& config);

// The rows of the pieces of a large enough split; a program for each stays in memory.
std::vector<int64_t> EvaluationPieces(const Config& config);

}  // namespace syntra
