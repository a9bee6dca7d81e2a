// attention on the GPU: tiles of scores, a softmax that is kept up to date as keys pass by
// (Milakov and Gimelshein 2018; Dao et al. 2022, FlashAttention, algorithm 1), and the product with
// the values. A block takes 64 queries of one (example, head). The shared class has kernels of its
// own (attention_shared.h) and leaves few examples to these.
#include "kernels/cuda/attention_shared.h"
#include "kernels/cuda/attention_step.h"

namespace syntra {
namespace attention {
namespace {

template <typename T>
struct Forward {
  Terms<T> terms;
  T* y;                // null: not wanted
  float* log_sum_exp;  // null: not wanted
  bool accumulate_y, accumulate_log_sum_exp;
};

template <typename T, int kHeadSize>
struct Storage {
  FeatureTiles<T> features;
  alignas(16) T probabilities[kTile * kTileStride];
  alignas(16) T value[kHeadSize * kTileStride];  // [column][key]
};

// What a lane keeps of the softmax of its two rows.
struct RowState {
  float largest = -INFINITY, sum = 0.0f;
};

__device__ float QuadMax(float value) {
  value = fmaxf(value, ShuffleXor(value, 1));
  return fmaxf(value, ShuffleXor(value, 2));
}
__device__ float QuadSum(float value) {
  value += ShuffleXor(value, 1);
  return value + ShuffleXor(value, 2);
}

// Turns the scores of row `half` (0: the lane's upper row, 1: the lower) into exponentials relative
// to the row's largest so far. Returns what older sums of the row are to be multiplied by.
__device__ float UpdateRow(Fragment (&scores)[kTileColumns], int half, RowState& state) {
  float largest = state.largest;
#pragma unroll
  for (Fragment& fragment : scores) {
    largest = fmaxf(largest, fmaxf(fragment.sum[2 * half], fragment.sum[2 * half + 1]));
  }
  largest = QuadMax(largest);
  // Nothing was allowed so far: any finite reference gives zeros.
  const float reference = largest == -INFINITY ? 0.0f : largest;
  float sum = 0.0f;
#pragma unroll
  for (Fragment& fragment : scores) {
#pragma unroll
    for (int k = 2 * half; k < 2 * half + 2; ++k) {
      fragment.sum[k] = expf(fragment.sum[k] - reference);
      sum += fragment.sum[k];
    }
  }
  const float factor = state.largest == -INFINITY ? 0.0f : expf(state.largest - reference);
  state.sum = state.sum * factor + QuadSum(sum);
  state.largest = largest;
  return factor;
}

// Stores what the softmax and the sums of a warp's 16 queries came to.
template <typename T, int kColumns>
__device__ void StoreOutputs(const Forward<T>& call, int64_t b, int64_t h, int64_t first_query,
                             const RowState (&state)[2], const Fragment (&y)[kColumns]) {
  const Terms<T>& terms = call.terms;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t i = first_query + WarpIndex() * 16 + FragmentRow(2 * half);
    if (i >= terms.queries) continue;
    const float inverse = state[half].sum > 0.0f ? 1.0f / state[half].sum : 0.0f;
    if (call.log_sum_exp != nullptr && LaneIndex() % 4 == 0) {
      const float value =
          state[half].sum > 0.0f ? state[half].largest + logf(state[half].sum) : -INFINITY;
      StoreResult(value, call.log_sum_exp + (b * terms.heads + h) * terms.queries + i,
                  call.accumulate_log_sum_exp);
    }
    if (call.y == nullptr) continue;
    T* row = call.y + ((b * terms.queries + i) * terms.heads + h) * terms.head_size;
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      for (int k = 2 * half; k < 2 * half + 2; ++k) {
        const int64_t column = n * 8 + FragmentColumn(k);
        if (column < terms.head_size) {
          StoreResult(y[n].sum[k] * inverse, row + column, call.accumulate_y);
        }
      }
    }
  }
}

template <typename T, int kHeadSize>
__global__ void __launch_bounds__(kTileThreads) AttentionKernel(Forward<T> call) {
  auto& shared = Shared<Storage<T, kHeadSize>>();
  const Terms<T>& terms = call.terms;
  T* own = shared.probabilities + WarpIndex() * 16 * kTileStride;
  ForTiles(terms, Tiles(terms.queries), [&](int64_t b, int64_t h, int64_t tile) {
    const int64_t first_query = tile * kTile;
    Fragment scores[kTileColumns], y[kHeadSize / 8] = {};
    RowState state[2];
    const int64_t end = KeyEnd(terms, first_query);
    for (int64_t first_key = 0; first_key < end; first_key += kTile) {
      Scores(terms, b, h, first_query, first_key, shared.features, scores);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = UpdateRow(scores, half, state[half]);
#pragma unroll
        for (Fragment& fragment : y) {
          fragment.sum[2 * half] *= factor;
          fragment.sum[2 * half + 1] *= factor;
        }
      }
      StoreTile(scores, false, shared.probabilities);
      SyncThreads();  // the values of the last tile are no longer in use
      LoadColumns(terms.value, b, terms.keys, terms.heads, terms.head_size, h, first_key, kHeadSize,
                  terms.head_size, shared.value);
      SyncThreads();
      AddProduct(y, own, kTileStride, shared.value, kTileStride, kTile);
    }
    StoreOutputs(call, b, h, first_query, state, y);
  });
}

}  // namespace
}  // namespace attention

std::optional<BoundKernel> cuda_attention(const OpCall& call) {
  using namespace attention;
  const Sizes sizes = SizesOf(call.attributes, call.inputs);
  const DType dtype = call.inputs[kValue].dtype;
  if (!IsActivation(call.inputs[kValue])) return std::nullopt;
  if (IsStep(sizes)) return BindStep(call, sizes);
  if (sizes.head_size > kLargestHead) return std::nullopt;
  WorkspaceLayout layout;
  const std::optional<SharedAttention> shared = SharedAttention::For(sizes, call.inputs, layout);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=, accumulate_y = Accumulates(call, kY),
                accumulate_log_sum_exp =
                    Accumulates(call, kLogSumExp)](const KernelArguments& arguments) {
    WithActivation(dtype, [&](auto type) {
      using T = decltype(type);
      Forward<T> forward{Terms<T>::Of(sizes, arguments), syntra::Output<T>(arguments, kY),
                         syntra::Output<float>(arguments, kLogSumExp), accumulate_y,
                         accumulate_log_sum_exp};
      forward.terms.query_start = syntra::Input<int32_t>(arguments, kQueryStart);
      if (shared) {
        const SharedScores<T> scores =
            shared->Run(arguments, forward.terms, {forward.log_sum_exp, accumulate_log_sum_exp});
        if (forward.y != nullptr) {
          MixValues(arguments, scores, {forward.terms.value, forward.y, accumulate_y});
        }
        if (!shared->may_leave()) return;
        forward.terms.examples = scores.left;
      }
      WithHeadSize(sizes.head_size, [&](auto head_size) {
        Launch(arguments,
               TileGrid(forward.terms, Tiles(sizes.queries), sizeof(Storage<T, head_size()>)),
               AttentionKernel<T, head_size()>, forward);
      });
    });
  };
  return kernel;
}

}  // namespace syntra
