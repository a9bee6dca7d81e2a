// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/tensor_map.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <bit>
#include <iterator>

#include "kernels/cuda/check.h"

namespace syntra::gpu {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) >= alignof(CUtensorMap));

// The driver's function, which the runtime finds, so that nothing is linked with the driver.
auto Encoder() {
  static const auto encoder = [] {
    constexpr unsigned kCuda12 = 12000;  // the first to have it
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    SYNTRA_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kCuda12,
                                                 cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) {
      Fail(ExitCode::kResources,
           "the NVIDIA driver has no cuTensorMapEncodeTiled, which Hopper GPUs need; update it");
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  return encoder;
}

}  // namespace

TensorMap MapTiles(const MappedTensor& tensor, int tile_rows) {
  const auto& [from, batch, rows, columns, pitch] = tensor;
  const auto size = [](int64_t n) { return static_cast<cuuint64_t>(n); };
  const cuuint64_t row_bytes = size(pitch) * sizeof(BFloat16);
  const cuuint64_t sizes[] = {size(columns), size(rows), size(batch)};
  const cuuint64_t strides[] = {row_bytes, row_bytes * size(rows)};
  const cuuint32_t tile[] = {kMappedColumns, static_cast<cuuint32_t>(tile_rows), 1};
  const cuuint32_t every[] = {1, 1, 1};
  CUtensorMap map;
  const CUresult status = Encoder()(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, std::size(sizes), const_cast<BFloat16*>(from), sizes,
      strides, tile, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    Fail(
        ExitCode::kInternal,
        "the NVIDIA driver refuses a map of [{}, {}, {} of {}] bf16 in tiles of {} rows (error {})",
        batch, rows, columns, pitch, tile_rows, static_cast<int>(status));
  }
  return std::bit_cast<TensorMap>(map);
}

}  // namespace syntra::gpu
