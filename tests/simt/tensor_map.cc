// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/tensor_map.h"

#include <cstring>

#include "base/error.h"
#include "tests/simt/hopper.h"

namespace syntra::gpu {

// Refuses what the driver would.
TensorMap MapTiles(const MappedTensor& tensor, int tile_rows) {
  const auto& [from, batch, rows, columns, pitch] = tensor;
  constexpr size_t kAlignment = 16;
  constexpr int kMostRows = 256;
  if (reinterpret_cast<uintptr_t>(from) % kAlignment != 0 ||
      pitch * sizeof(BFloat16) % kAlignment != 0 || pitch < columns || batch < 1 || rows < 1 ||
      columns < 1 || tile_rows < 1 || tile_rows > kMostRows) {
    Fail(ExitCode::kResources, "no map of [{}, {}, {} of {}] bf16 at {} in tiles of {} rows", batch,
         rows, columns, pitch, static_cast<const void*>(from), tile_rows);
  }
  const simt::MappedTiles tiles{tensor, tile_rows};
  TensorMap map{};
  static_assert(sizeof(tiles) <= sizeof(map.opaque));
  std::memcpy(map.opaque, &tiles, sizeof(tiles));
  return map;
}

}  // namespace syntra::gpu
