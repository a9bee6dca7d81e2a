// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/tensor_map.h"

#include <cstring>

#include "base/error.h"
#include "tests/simt/hopper.h"

namespace syntra::gpu {

// Refuses what the driver would.
TensorMap MapTiles(const BFloat16* from, int64_t batch, int64_t rows, int64_t columns,
                   int tile_rows) {
  constexpr size_t kAlignment = 16;
  constexpr int kMostRows = 256;
  if (reinterpret_cast<uintptr_t>(from) % kAlignment != 0 ||
      columns * sizeof(BFloat16) % kAlignment != 0 || batch < 1 || rows < 1 || columns < 1 ||
      tile_rows < 1 || tile_rows > kMostRows) {
    Fail(ExitCode::kResources, "no map of [{}, {}, {}] bf16 at {} in tiles of {} rows", batch, rows,
         columns, static_cast<const void*>(from), tile_rows);
  }
  const simt::MappedTensor tensor{from, batch, rows, columns, tile_rows};
  TensorMap map{};
  static_assert(sizeof(tensor) <= sizeof(map.opaque));
  std::memcpy(map.opaque, &tensor, sizeof(tensor));
  return map;
}

}  // namespace syntra::gpu
