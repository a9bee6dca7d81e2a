// SPDX-License-Identifier: Apache-2.0
// How the attention kernels cut their work into tiles, and the products of features that fill a
// tile: q . k and u . p. One unit of work is an (example, head); its operands are gathered into
// dense rows, which the products run 10 % faster on than on strided ones.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/gemm.h"
#include "kernels/op.h"
#include "kernels/ops/attention.h"

namespace syntra::attention {

// Hands out 64-byte aligned parts of one block of memory.
class Layout {
 public:
  size_t Take(size_t bytes);
  size_t TakeFloats(int64_t count) { return Take(count * sizeof(float)); }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

// A block of queries and the prefix of the keys that it can see.
struct Block {
  int64_t first, rows, keys;
  int shape;  // blocks of equal rows and keys share their products
};

// `tile_bytes`: what one f32 tile of scores may take of the second-level cache.
std::vector<Block> BlocksOf(const Sizes& sizes, bool from_start, int64_t tile_bytes);
// The first block of each shape.
std::vector<Block> ShapesOf(const std::vector<Block>& blocks);

using Inputs = std::span<void* const>;

// The element at (example b, row i, head h, 0) of an activation [B, rows, H * width].
inline std::byte* ElementOf(void* base, const Sizes& z, DType dtype, int64_t rows, int64_t width,
                            int64_t b, int64_t i, int64_t h) {
  return static_cast<std::byte*>(base) + ((b * rows + i) * z.heads + h) * width * SizeOf(dtype);
}

// Scratch of one thread and of one call, as the kernels carry them around.
struct Workspace {
  std::byte* call;
  std::byte* thread;
  std::byte* products;  // for Gemm::Run
};

class ScoreProducts {
 public:
  // Adds what it needs to the layouts of the call's and of each thread's workspace.
  ScoreProducts(const Sizes& sizes, std::span<const TensorType> inputs,
                const std::vector<Block>& blocks, Layout& call, Layout& thread);

  // Once per call, before any tile.
  void RoundPositions(const Inputs& inputs, const Workspace& workspace) const;
  // Once per (example, head), before its tiles: gathers the keys.
  void GatherKeys(const Inputs& inputs, int64_t b, int64_t h, const Workspace& workspace) const;
  // Fills tile.scores with the products, or with zeros if there are none; tile.position_scores too.
  // Leaves the block's rows of q and u gathered.
  void Fill(const Inputs& inputs, int64_t b, int64_t h, const Block& block, Tile& tile,
            const Workspace& workspace) const;
  // The same without packed kernels, for few queries.
  void FillFew(const Inputs& inputs, int64_t b, int64_t h, const Block& block, Tile& tile,
               const Workspace& workspace) const;
  // `masked`: whether the segments of example b have to be looked at.
  RowTerms Terms(const Inputs& inputs, int64_t b, int64_t h, bool masked) const;
  Tile TileOf(const Block& block, float* scores, const Workspace& workspace) const;

  // Gathered operands, and where one's elements may be rounded copies of f32 inputs.
  std::byte* query(const Workspace& w) const { return w.thread + query_; }
  std::byte* key(const Workspace& w) const { return w.thread + key_; }
  std::byte* u(const Workspace& w) const { return w.thread + u_; }
  float* position_scores(const Workspace& w) const {
    return reinterpret_cast<float*>(w.thread + position_scores_);
  }
  // [F, N] of head h, in the type of the activations.
  const std::byte* positions(const Inputs& inputs, int64_t h, const Workspace& w) const;
  int64_t extent() const { return extent_; }
  size_t product_bytes() const { return product_bytes_; }
  bool has(Input input) const { return present_[input]; }

 private:
  Sizes z_;
  DType dtype_;
  bool present_[kInputCount] = {};
  bool by_position_ = false;
  int64_t extent_ = 0;
  std::vector<Gemm> dot_, feature_;  // per shape
  size_t product_bytes_ = 0;
  size_t query_ = 0, key_ = 0, u_ = 0, position_scores_ = 0, row_scratch_ = 0;
  size_t rounded_positions_ = 0;
};

// whole[b]: whether example b is one segment from end to end, so that its mask can be ignored.
// Lists the whole examples and returns how many there are.
int64_t FindWholeExamples(const Sizes& sizes, const Inputs& inputs, uint8_t* whole,
                          int64_t* examples);

}  // namespace syntra::attention
