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
  constexpr int64_t kMostSize = int64_t{1} << 32, kMostStride = (int64_t{1} << 40) - 1;
  const auto is_size = [](int64_t n) { return n >= 1 && n <= kMostSize; };
  const int64_t row_bytes = pitch * static_cast<int64_t>(sizeof(BFloat16));
  if (reinterpret_cast<uintptr_t>(from) % kAlignment != 0 || row_bytes % kAlignment != 0 ||
      pitch < columns || !is_size(batch) || !is_size(rows) || !is_size(columns) ||
      row_bytes > kMostStride / rows || tile_rows < 1 || tile_rows > kMostRows) {
    Fail(ExitCode::kInternal, "no map of [{}, {}, {} of {}] bf16 at {} in tiles of {} rows", batch,
         rows, columns, pitch, static_cast<const void*>(from), tile_rows);
  }
  const simt::MappedTiles tiles{tensor, tile_rows};
  TensorMap map{};
  static_assert(sizeof(tiles) <= sizeof(map.opaque));
  std::memcpy(map.opaque, &tiles, sizeof(tiles));
  return map;
}

}  // namespace syntra::gpu
