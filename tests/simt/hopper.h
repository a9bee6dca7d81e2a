// SPDX-License-Identifier: Apache-2.0
// The simulated GPU's barriers in shared memory, copies of tiles, and products by warpgroups
// (kernels/cuda/hopper.h, PTX ISA). All of it happens as late as the PTX ISA allows:
//   copies arrive when a thread waits for their barrier and no other thread can run. Until then the
//     target is NaN;
//   products read their operands and add to the sums when their warp waits for them. Until then the
//     sums are NaN.
// The simulation reports barriers that expect fewer bytes than arrive, registers that are written
// while a product uses them, products without a fence, warps of a warpgroup that compute different
// products, registers that a block does not have, and, through access_check.h, memory that threads
// have accessed without FenceAsync.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/bfloat16.h"
#include "kernels/cuda/tensor_map.h"

namespace syntra::simt {

void MakeBarrier(void* barrier, int arrivals);
void Arrive(void* barrier, int64_t expected_bytes);
void WaitFor(void* barrier, int parity);
void FenceAsync();

// Sets the number of the running thread's registers, `more` than it has or fewer. All threads of a
// warpgroup set the same. They start with as many as one block on a multiprocessor can have.
void SetRegisters(int count, bool more);

// A tensor in tiles of 64 columns.
struct MappedTiles {
  gpu::MappedTensor tensor;
  int tile_rows;

  bool Has(int64_t row, int64_t column) const {
    return row >= 0 && row < tensor.rows && column >= 0 && column < tensor.columns;
  }
  // Where an element of it is.
  const BFloat16* At(int64_t example, int64_t row, int64_t column) const {
    return tensor.from + (example * tensor.rows + row) * tensor.pitch + column;
  }
};
struct TilePlace {
  int column, row;
  int64_t example;
};
// `map`: the bytes of MappedTiles.
void CopyTile(void* to, std::span<const std::byte> map, const TilePlace& place, void* barrier);

void FenceProducts();
// Of a product: the columns of B, and which operands in shared memory have a row for each inner
// element.
struct ProductShape {
  int columns = 64;
  bool a_across = false, b_across = false;
};
// Adds a product to the lane's sums of a tile of 16 rows. A: the lane's four pairs, or a
// descriptor. B: a descriptor.
void Multiply(float* sums, const uint32_t* a_pairs, uint64_t a, uint64_t b,
              const ProductShape& shape);
void CommitProducts();
// Waits for all groups of products that the lane has committed, except the last `left`.
void WaitForProducts(int left);

namespace hopper {
// Call these before and after the threads of a block run. EndBlock reports what was never waited
// for, and more registers than the block has.
void StartBlock(int threads);
void EndBlock();
}  // namespace hopper

}  // namespace syntra::simt
