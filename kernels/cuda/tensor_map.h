// SPDX-License-Identifier: Apache-2.0
// Maps by which Hopper GPUs copy tiles of a tensor to shared memory (hopper.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace syntra::gpu {

// The columns of a tile: 128 bytes, over which its rows are swizzled.
inline constexpr int kMappedColumns = 64;

// The layout is the driver's. Kernels get it by value, as a __grid_constant__ parameter.
struct alignas(128) TensorMap {
  std::byte opaque[128];
};

// A tensor [batch, rows, columns], with `pitch` elements from one row to the next.
struct MappedTensor {
  const BFloat16* from;
  int64_t batch, rows, columns, pitch;
};

// A map of a tensor whose tiles have `tile_rows` <= 256 rows. The tensor begins at a multiple of 16
// bytes, and so do its rows. Throws Error(kInternal) if the driver refuses it.
TensorMap MapTiles(const MappedTensor& tensor, int tile_rows);

}  // namespace syntra::gpu
