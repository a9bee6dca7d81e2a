// SPDX-License-Identifier: Apache-2.0
// linear_argmax: argmax_v of scale * hidden . embedding_v, the lowest index among equals.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_argmax.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/cpu/vocabulary_tiles.h"
#include "kernels/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

// +infinity also if there is a NaN, which a maximum passes over.
float LargestLogit(const float* logits, int64_t count) {
  const FloatVector infinity = hn::Set(FloatTag(), HUGE_VALF);
  bool below_infinity = true;
  VectorLoop(count, [&](int64_t j, auto lanes) {
    below_infinity &= hn::AllTrue(FloatTag(), hn::Lt(Load(logits + j, lanes), infinity));
  });
  return below_infinity ? LargestOf(logits, count) : HUGE_VALF;
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(LargestLogit);

namespace {

struct Best {
  float logit;
  int32_t index;  // -1: none
};

// Finds the best of each block of the vocabulary, then the best of all. Of equal ones the earlier
// wins.
struct ArgmaxPlan {
  ArgmaxPlan(const Projection& projection, PackedWeights* weights)
      : tiles(projection), products(tiles, weights) {
    WorkspaceLayout thread_layout;
    logits = thread_layout.Place(tiles.chunk_rows() * tiles.largest_block() * sizeof(float));
    scratch = thread_layout.Place(products.workspace_bytes());
    thread_bytes = thread_layout.bytes();
    WorkspaceLayout layout;
    best = layout.Place(tiles.block_count() * projection.tokens * sizeof(Best));
    threads = layout.Place(ThreadCount() * thread_bytes);
    workspace_bytes = layout.bytes();
  }

  void Run(const KernelArguments& arguments) const;
  void FindInTile(const LogitTile& tile, Best* found) const;

  VocabularyTiles tiles;
  LogitProducts products;
  size_t best, threads, thread_bytes, logits, scratch, workspace_bytes;
};

void ArgmaxPlan::FindInTile(const LogitTile& tile, Best* found) const {
  for (int64_t row = 0; row < tile.rows; ++row) {
    const float* values = tile.logits + row * tile.columns;
    const float largest = HWY_DYNAMIC_DISPATCH(LargestLogit)(values, tile.columns);
    found[row] = {largest, -1};
    if (std::isinf(largest)) continue;
    const auto index = std::find(values, values + tile.columns, largest) - values;
    found[row].index = static_cast<int32_t>(tile.first_column + index);
  }
}

void ArgmaxPlan::Run(const KernelArguments& arguments) const {
  const int64_t tokens = tiles.projection().tokens, blocks = tiles.block_count();
  auto* found = reinterpret_cast<Best*>(arguments.workspace + best);
  std::fill_n(found, blocks * tokens, Best{-HUGE_VALF, -1});
  ParallelTasks(blocks, [&](int64_t block) {
    std::byte* thread = arguments.workspace + threads + ThreadIndex() * thread_bytes;
    for (int64_t chunk = 0; chunk < tiles.chunk_count(); ++chunk) {
      const LogitTile tile = tiles.tile(chunk, block, reinterpret_cast<float*>(thread + logits));
      products.Run(Input<std::byte>(arguments, 0), Input<float>(arguments, 1), tile,
                   thread + scratch);
      FindInTile(tile, found + block * tokens + tile.first_token);
    }
  });
  int32_t* result = Output<int32_t>(arguments, 0);
  for (int64_t i = 0; i < tokens; ++i) {
    Best of_token = found[i];
    for (int64_t block = 1; block < blocks; ++block) {
      const Best& other = found[block * tokens + i];
      if (other.logit > of_token.logit) of_token = other;
    }
    result[i] = of_token.index;
  }
}

}  // namespace

std::optional<BoundKernel> cpu_linear_argmax(const OpCall& call) {
  const auto plan = std::make_shared<const ArgmaxPlan>(ProjectionOf(call), call.packed_weights);
  BoundKernel kernel;
  kernel.workspace_bytes = plan->workspace_bytes;
  kernel.run = [plan](const KernelArguments& arguments) { plan->Run(arguments); };
  return kernel;
}

}  // namespace syntra
#endif
