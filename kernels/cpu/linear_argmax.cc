// linear_argmax: argmax_v of scale * hidden . embedding_v, the lowest index among equals.
#include <limits>
#include <memory>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_argmax.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/vocabulary_tiles.h"
#include "kernels/cpu/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

float LargestOf(const float* values, int64_t count) {
  const FloatTag d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  FloatVector largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + n <= count; i += n) largest = hn::Max(largest, hn::LoadU(d, values + i));
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < count; ++i) result = std::max(result, values[i]);
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(LargestOf);

namespace {

// The largest logit of a token so far; found earlier wins among equals.
struct Best {
  float logit;
  int32_t index;
};

struct ArgmaxPlan {
  explicit ArgmaxPlan(const Projection& projection)
      : tiles(projection), rows(tiles), products(tiles) {
    WorkspaceLayout layout;
    rounded = layout.Place(rows.workspace_bytes());
    packed = layout.Place(products.packed_bytes());
    logits = layout.Place(tiles.chunk_rows() * tiles.largest_block() * sizeof(float));
    best = layout.Place(projection.tokens * sizeof(Best));
    scratch = layout.Place(products.workspace_bytes());
    workspace_bytes = layout.bytes();
  }

  void Run(const KernelArguments& arguments) const;

  VocabularyTiles tiles;
  BlockRows rows;
  LogitProducts products;
  size_t rounded, packed, logits, best, scratch, workspace_bytes;
};

void ArgmaxPlan::Run(const KernelArguments& arguments) const {
  const Projection& projection = tiles.projection();
  const auto* hidden = Input<std::byte>(arguments, 0);
  const auto* embedding = Input<float>(arguments, 1);
  auto* packed_block = arguments.workspace + packed;
  auto* tile = reinterpret_cast<float*>(arguments.workspace + logits);
  auto* found = reinterpret_cast<Best*>(arguments.workspace + best);
  auto* product_scratch = arguments.workspace + scratch;
  std::fill_n(found, projection.tokens, Best{-std::numeric_limits<float>::infinity(), 0});
  for (int64_t block = 0; block < tiles.block_count(); ++block) {
    const int64_t columns = tiles.block_columns(block);
    const std::byte* block_rows = rows.Get(embedding, block, arguments.workspace + rounded);
    products.Prepare(block_rows, block, packed_block, product_scratch);
    for (int64_t i = 0; i < tiles.chunk_count(); ++i) {
      const int64_t first = tiles.chunk(i).first;
      products.Run(hidden + first * projection.width * SizeOf(projection.dtype), block_rows, block,
                   packed_block, tile, product_scratch);
      ParallelFor(tiles.chunk_rows(), 4, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* values = tile + row * columns;
          const float largest = HWY_DYNAMIC_DISPATCH(LargestOf)(values, columns);
          if (!(largest > found[first + row].logit)) continue;
          const auto index = std::find(values, values + columns, largest) - values;
          found[first + row] = {largest, static_cast<int32_t>(tiles.block_first(block) + index)};
        }
      });
    }
  }
  int32_t* result = Output<int32_t>(arguments, 0);
  for (int64_t i = 0; i < projection.tokens; ++i) result[i] = found[i].index;
}

}  // namespace

std::optional<BoundKernel> cpu_linear_argmax(const OpCall& call) {
  const TensorType &hidden = call.inputs[0], &embedding = call.inputs[1];
  if (!IsActivation(hidden) || !IsF32(embedding)) return std::nullopt;
  const auto plan = std::make_shared<const ArgmaxPlan>(
      Projection{hidden.shape.rows(), hidden.shape[-1], embedding.shape[0], hidden.dtype,
                 static_cast<float>(call.attributes.Number("scale"))});
  BoundKernel kernel;
  kernel.workspace_bytes = plan->workspace_bytes;
  kernel.run = [plan](const KernelArguments& arguments) { plan->Run(arguments); };
  return kernel;
}

}  // namespace syntra
#endif
