// SPDX-License-Identifier: Apache-2.0
// attention on the GPU. A block of AttentionKernel computes 64 or 128 queries of one (example,
// head). It loops over tiles of keys, updates an online softmax and adds the products with the
// values (attention/forward.h). Three kinds of calls have kernels of their own: decode steps
// (attention/decode_step.h); the shared class (attention/shared.h), which leaves only a few
// examples to AttentionKernel; and, on Hopper GPUs, products or factors
// (attention/forward_hopper.h). cuda_attention, at the end of this file, chooses.
#include "base/divide.h"
#include "kernels/cuda/attention/decode_step.h"
#include "kernels/cuda/attention/factors.h"
#include "kernels/cuda/attention/forward.h"
#include "kernels/cuda/attention/forward_hopper.h"
#include "kernels/cuda/attention/hopper_tiles.h"
#include "kernels/cuda/attention/score_starts.h"
#include "kernels/cuda/attention/shared.h"

namespace syntra {
namespace attention {
namespace {

// A tile for heads of up to kHead columns. A warp has 16 kM queries: as many as registers allow,
// because it uses each key that it loads for all of them.
template <typename T, int kHead>
class AttentionTile {
 public:
  static constexpr int kChunks = kHead / kColumns;
  static constexpr int kM = kChunks == 1 && sizeof(T) == sizeof(BFloat16) ? 2 : 1;
  static constexpr int kN = kPassingFragments<T>, kQueries = kTileWarps * 16 * kM;

  __device__ AttentionTile(const Forward<T>& call, T* memory, int64_t b, int64_t h, int tile)
      : call_(call), terms_(call.terms), b_(b), h_(h), own_(memory), keys_(Keys(terms_, b, h)) {
    next_ = {tile * kQueries, -kPassing<T>, {}};
    const Side<T> queries = Queries<T>(terms_, nullptr, b, h);
    queries.template Copy<kQueries>(next_.own, own_);
    stages_ = own_ + queries.TileCount() * kOwnTile<T, kM>;
  }

  __device__ bool Find() { return FindNext<false>(terms_, b_, h_, kQueries, next_); }

  __device__ void Copy(int stage) { keys_.template Copy<kPassing<T>>(next_.passing, Stage(stage)); }

  __device__ void Prepare() {
    place_ = next_;
    StartScores<false>(terms_, b_, h_, place_, scores_);
  }

  __device__ void Use(int stage) {
    AddProducts(keys_, own_, Stage(stage), scores_);
    MaskScores<false>(terms_, b_, h_, place_, scores_);
    rows_.Weigh(scores_);
    const T* values = Stage(stage) + keys_.Scores() * kPassingTile<T>;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c < keys_.value.TileCount()) AddMixed(scores_, values + c * kPassingTile<T>, rows_.y[c]);
    }
  }

  // Call it when no stage is in use any more.
  __device__ void Store() {
    rows_.Store(call_, b_, h_, next_.own,
                reinterpret_cast<RowsOfSums*>(stages_)->of_warp[WarpIndex()]);
  }

 private:
  __device__ T* Stage(int stage) const {
    return stages_ + stage * keys_.TileCount() * kPassingTile<T>;
  }

  const Forward<T>& call_;
  const Terms<T>& terms_;
  int64_t b_, h_;
  T *own_, *stages_;
  Side<T> keys_;
  Place next_, place_;
  Fragment scores_[kM][kN];
  ForwardRows<T, kM, kChunks> rows_;
};

template <typename Tile, bool kPlain, typename T>
__global__ void __launch_bounds__(kTileThreads, 2) AttentionKernel(Forward<T> call, int stages) {
  if constexpr (kPlain) call.terms.AssumePlain();
  T* memory = reinterpret_cast<T*>(SharedBytes());
  const auto heads = static_cast<int>(call.terms.heads);
  const int tiles = DivideUp(static_cast<int>(call.terms.queries), Tile::kQueries);
  ForItems(call.terms, call.terms.ExampleCount() * heads * tiles, [&](int item) {
    const int64_t b = call.terms.Example(item / tiles / heads);
    Tile tile(call, memory, b, item / tiles % heads, item % tiles);
    PassStages(stages, tile);
    tile.Store();
  });
}

// Calls body with the type of the tiles for this head size.
template <typename T, typename Body>
void WithTile(int64_t head_size, const Body& body) {
  if (head_size <= kColumns) return body(std::type_identity<AttentionTile<T, kColumns>>());
  body(std::type_identity<AttentionTile<T, kLargestHead>>());
}

template <typename T>
std::optional<TileMemory> MemoryFor(const Dimensions& z, bool dot) {
  const int64_t values = Chunks(z.head_size);
  const int64_t scores =
      (dot ? values : 0) + Chunks(z.features) + Chunks(z.a_size) + Chunks(z.b_size);
  std::optional<TileMemory> memory;
  WithTile<T>(z.head_size, [&]<typename Tile>(std::type_identity<Tile>) {
    memory = TileMemory::For(scores * kOwnTile<T, Tile::kM> * sizeof(T),
                             (scores + values) * kPassingTile<T> * sizeof(T));
  });
  return memory;
}

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cuda_attention(const OpCall& call) {
  using namespace attention;
  const Dimensions z = DimensionsOf(call.attributes, call.inputs);
  const DType dtype = call.inputs[kValue].dtype;
  if (!FitInt(z)) return std::nullopt;
  if (IsDecodeStep(z)) return BindDecodeStep(call, z);
  if (z.head_size > kLargestHead) return std::nullopt;
  std::optional<TileMemory> memory;
  WithActivation(dtype, [&](auto type) {
    memory = MemoryFor<decltype(type)>(z, call.inputs[kQuery].present());
  });
  if (!memory) return std::nullopt;
  WorkspaceLayout layout;
  const std::optional<SharedAttention> shared = SharedAttention::For(z, call.inputs, layout);
  const PreparedTerms prepared(z, call.inputs, layout);
  const bool hopper = dtype == DType::kBF16 && HopperServesForward(z) && !shared &&
                      !call.inputs[kQueryStart].present();
  const bool products = hopper && HopperServesProducts(z, call.inputs);
  const bool factors = hopper && HopperServesFactors(z, call.inputs);
  std::optional<size_t> starts;
  if (products && HasStarts(call.inputs)) {
    starts = layout.Place(StartElements<false>(z) * sizeof(BFloat16));
  }
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=](const KernelArguments& arguments) {
    WithActivation(dtype, [&](auto type) {
      using T = decltype(type);
      auto forward = Forward<T>::Of(call, z, arguments);
      if (shared) {
        const SharedScores<T> scores = shared->Run(
            arguments, forward.terms, {forward.log_sum_exp, forward.accumulate_log_sum_exp});
        if (forward.y != nullptr) {
          MixValues(arguments, scores, {forward.terms.value, forward.y, forward.accumulate_y});
        }
        if (!shared->may_leave()) return;
        forward.terms.examples = scores.left;
      }
      prepared.Run(arguments, forward.terms);
      if constexpr (std::is_same_v<T, BFloat16>) {
        if (products || factors) {
          if (starts) forward.starts = reinterpret_cast<T*>(arguments.workspace + *starts);
          return RunForwardOnHopper(arguments, forward);
        }
      }
      WithTile<T>(z.head_size, [&]<typename Tile>(std::type_identity<Tile>) {
        const int64_t tiles = DivideUp(z.queries, Tile::kQueries);
        const Grid grid = ItemGrid(forward.terms, z.batch * z.heads * tiles, memory->bytes);
        WithPlain(forward.terms, [&](auto plain) {
          Launch(arguments, grid, AttentionKernel<Tile, plain(), T>, forward, memory->stages);
        });
      });
    });
  };
  return kernel;
}

}  // namespace syntra
