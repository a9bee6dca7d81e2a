// SPDX-License-Identifier: Apache-2.0
// The chunks in which vectors go from rank to rank through host memory. This file is separate from
// mpi.h, because the plan calculates with chunks, too, and does not use MPI.
#pragma once

#include <cstdint>

namespace syntra {

// A chunk has a piece of every rank's share. The pieces in a rank's slot, and the messages that a
// rank sends to the hosts at once, are of kChunkBytes in all, but none is smaller than a page.
inline constexpr int64_t kChunkBytes = int64_t{1} << 20;
inline constexpr int64_t kSmallestPieceBytes = 4096;

}  // namespace syntra
