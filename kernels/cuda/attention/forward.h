// SPDX-License-Identifier: Apache-2.0
// attention's forward pass: its outputs, and a warp's rows of them. Softmax and the products with
// the values are summed tile by tile (Milakov and Gimelshein 2018; Dao et al. 2022, FlashAttention,
// algorithm 1).
#pragma once

#include "kernels/cuda/attention/scores.h"

namespace syntra::attention {

template <typename T>
struct Forward {
  Terms<T> terms;
  T* y;                // null: not needed
  float* log_sum_exp;  // null: not needed
  bool accumulate_y, accumulate_log_sum_exp;
  T* starts = nullptr;  // memory for tiles that Hopper GPUs load (score_starts.h)

  // `z`: the call's dimensions.
  static Forward Of(const OpCall& call, const Dimensions& z, const KernelArguments& arguments) {
    Forward forward{.terms = Terms<T>::Of(z, arguments),
                    .y = syntra::Output<T>(arguments, kY),
                    .log_sum_exp = syntra::Output<float>(arguments, kLogSumExp),
                    .accumulate_y = Accumulates(call, kY),
                    .accumulate_log_sum_exp = Accumulates(call, kLogSumExp)};
    forward.terms.query_start = syntra::Input<int32_t>(arguments, kQueryStart);
    return forward;
  }
};

// A lane's state of the softmax of a row.
struct RowState {
  float largest = -INFINITY, sum = 0.0f;
};

__device__ __forceinline__ float QuadMax(float value) {
  value = fmaxf(value, ShuffleXor(value, 1));
  return fmaxf(value, ShuffleXor(value, 2));
}
__device__ __forceinline__ float QuadSum(float value) {
  value += ShuffleXor(value, 1);
  return value + ShuffleXor(value, 2);
}

// Turns the scores of row `half` (0: the lane's upper row, 1: the lower) into exponentials relative
// to the row's largest score so far. Returns the factor by which older sums of the row must be
// multiplied.
template <typename T, int kN>
__device__ __forceinline__ float UpdateRow(Fragment (&scores)[kN], int half, RowState& state) {
  float largest = state.largest;
#pragma unroll
  for (const Fragment& fragment : scores) {
    largest = fmaxf(largest, fmaxf(fragment.sum[2 * half], fragment.sum[2 * half + 1]));
  }
  largest = QuadMax(largest);
  // If no key was allowed so far, any finite reference gives zeros.
  const float offset = largest == -INFINITY ? 0.0f : OffsetOf<T>(largest);
  float sum = 0.0f;
#pragma unroll
  for (Fragment& fragment : scores) {
#pragma unroll
    for (int k = 2 * half; k < 2 * half + 2; ++k) {
      fragment.sum[k] = Exponential<T>(fragment.sum[k], offset);
      sum += fragment.sum[k];
    }
  }
  const float factor = Exponential<T>(state.largest, offset);
  state.sum = state.sum * factor + sum;  // lanes add up their sums after the last tile
  state.largest = largest;
  return factor;
}

// The 16 kM rows of a warp.
template <typename T, int kM, int kChunks>
class ForwardRows {
 public:
  Fragment y[kChunks][kM][kFragments] = {};  // sums of values by weight

  // Turns the scores of a tile into weights, for which `y` is then ready.
  template <int kN>
  __device__ __forceinline__ void Weigh(Fragment (&scores)[kM][kN]) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = UpdateRow<T>(scores[m], half, state_[m][half]);
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
#pragma unroll
          for (Fragment& fragment : y[c][m]) {
            fragment.sum[2 * half] *= factor;
            fragment.sum[2 * half + 1] *= factor;
          }
        }
      }
    }
  }

  // Divides the rows by their sums and stores them. `first`: the block's first query.
  __device__ __forceinline__ void Store(const Forward<T>& call, int64_t b, int64_t h, int first,
                                        SumsBuffer& staged) {
    const Terms<T>& terms = call.terms;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      const int row = first + (WarpIndex() * kM + m) * 16;
#pragma unroll
      for (int half = 0; half < 2; ++half) Finish(call, b, h, m, half, row);
      if (call.y == nullptr) continue;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        StoreTile(staged, y[c][m],
                  TargetAt(call.y, DenseRows(terms, terms.queries, terms.head_size), b, h,
                           call.accumulate_y),
                  row, c * kColumns);
      }
    }
  }

 private:
  // Whether query i counts (TileMask).
  __device__ static bool Counts(const Terms<T>& terms, int64_t b, int i) {
    return i < terms.queries &&
           (terms.query_segments == nullptr || terms.query_segments[b * terms.queries + i] != 0);
  }

  // Divides a row by its sum and stores its log_sum_exp. `first`: the first of the 16 rows.
  __device__ __forceinline__ void Finish(const Forward<T>& call, int64_t b, int64_t h, int m,
                                         int half, int first) {
    const Terms<T>& terms = call.terms;
    const int i = first + FragmentRow(2 * half);
    const RowState& state = state_[m][half];
    const float sum = QuadSum(state.sum);
    const bool none = !Counts(terms, b, i) || sum == 0.0f;  // no key is allowed
    const float inverse = none ? 0.0f : 1.0f / sum;
    if (call.log_sum_exp != nullptr && LaneIndex() % 4 == 0 && i < terms.queries) {
      StoreResult(none ? -INFINITY : state.largest + logf(sum),
                  call.log_sum_exp + (b * terms.heads + h) * terms.queries + i,
                  call.accumulate_log_sum_exp);
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
#pragma unroll
      for (Fragment& fragment : y[c][m]) {
#pragma unroll
        for (int k = 2 * half; k < 2 * half + 2; ++k) {
          fragment.sum[k] = none ? 0.0f : fragment.sum[k] * inverse;
        }
      }
    }
  }

  RowState state_[kM][2];
};

}  // namespace syntra::attention
