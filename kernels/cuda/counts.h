// SPDX-License-Identifier: Apache-2.0
// What kernels may count in int. Elements are counted in int64_t, so a tensor may have more than
// 2^31. Rows, tiles and blocks are often int, since divisions of int64_t take a GPU long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace syntra::gpu {

// Whether int holds all of these. A kernel that counts them in int does not serve a call for which
// it does not.
inline bool FitInt(std::initializer_list<int64_t> counts) {
  return std::ranges::all_of(counts, [](int64_t count) { return count <= INT32_MAX; });
}

}  // namespace syntra::gpu
