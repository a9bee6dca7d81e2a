// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/decode_step.h"

#include "base/divide.h"
#include "kernels/cuda/attention/forward.h"
#include "kernels/cuda/launch.h"

namespace syntra::attention {
namespace {

constexpr int kDecodeThreads = 128;
// The number of lanes that compute a key's dot product. Each handles eight elements at a time.
constexpr int kKeyLanes = 8;
// The rows of keys or values that a thread loads before it waits for one: a block has little else
// to do meanwhile.
constexpr int kAtOnce = 4;
// The shared memory that every GPU has by default holds this many scores. Calls with more keys use
// the tile kernel.
constexpr int64_t kMostKeys = 8192;

// The shared memory of a block. A score for each key follows it.
struct DecodeStorage {
  alignas(16) float sums[kDecodeThreads][kEight];
  float of_warp[kDecodeThreads / kWarp];
};

__device__ float BlockMax(float value, float* scratch) {
  value = WarpMax(value);
  if (LaneIndex() == 0) scratch[WarpIndex()] = value;
  SyncThreads();
  float largest = -INFINITY;
  for (int warp = 0; warp < WarpCount(); ++warp) largest = fmaxf(largest, scratch[warp]);
  SyncThreads();
  return largest;
}

// The number of keys that the query may read: in decoding, keys after the current position do not
// exist yet.
template <typename T>
__device__ int64_t ReadableKeys(const Terms<T>& terms) {
  if (!terms.pattern.causal || terms.prefix_ends != nullptr) return terms.keys;
  const int64_t existing = terms.Start() + 1;
  return existing < terms.keys ? existing : terms.keys;
}

// scores[j] = query . key_j, computed by groups of lanes.
template <typename T>
__device__ void ScoreKeys(const Terms<T>& terms, int64_t b, int64_t h, int64_t keys,
                          float* scores) {
  const int lane = ThreadIndex() % kKeyLanes;
  const T* query = terms.query + b * terms.query_pitch + h * terms.head_size;
  constexpr int kStep = kDecodeThreads / kKeyLanes;
  for (int64_t first = 0; first < keys; first += kAtOnce * kStep) {
    const int64_t j = first + ThreadIndex() / kKeyLanes;
    const T* rows[kAtOnce];
    float sums[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t row = j + i * kStep < keys ? j + i * kStep : 0;
      rows[i] = terms.key + (b * terms.keys + row) * terms.key_pitch + h * terms.head_size +
                lane * kEight;
    }
    for (int64_t k = lane * kEight; k < terms.head_size; k += kKeyLanes * kEight) {
      const auto left = static_cast<int>(terms.head_size - k);
      const int count = left < kEight ? left : kEight;
      const Eight q = LoadEight(query + k, count);
      Eight key[kAtOnce];
      LoadRows(rows, count, key);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int e = 0; e < kEight; ++e) sums[i] += q[e] * key[i][e];
        rows[i] += kKeyLanes * kEight;
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      for (int mask = kKeyLanes / 2; mask > 0; mask /= 2) sums[i] += ShuffleXor(sums[i], mask);
      if (lane == 0 && j + i * kStep < keys) scores[j + i * kStep] = sums[i];
    }
  }
}

// u . p_j. Threads with neighbouring keys read neighbouring entries of the table.
template <typename T>
__device__ float PositionScore(const Terms<T>& terms, int64_t b, int64_t h, int64_t j) {
  const T* u = terms.u + (b * terms.heads + h) * terms.features;
  float sum = 0.0f;
  for (int64_t f = 0; f < terms.features; ++f) {
    sum += ToFloat(u[f]) * ToFloat(FromFloat<T>(terms.PositionAt(b, h, j, f)));
  }
  return sum;
}

// The product of the factors for key j.
template <typename T>
__device__ float FactorScore(const Terms<T>& terms, int64_t b, int64_t h, int64_t j) {
  const int64_t row = b * terms.heads + h, n = terms.KeyPosition(b, j);
  return ToFloat(terms.a[row * terms.a_size + n % terms.a_size]) *
         ToFloat(terms.b[row * terms.b_size + n / terms.a_size]);
}

// Adds the other terms, applies the mask, and returns the largest score of this thread's keys.
template <typename T>
__device__ float FinishScores(const Terms<T>& terms, int64_t b, int64_t h, int64_t keys,
                              float* scores) {
  float largest = -INFINITY;
  for (int64_t j = ThreadIndex(); j < keys; j += kDecodeThreads) {
    float score = -INFINITY;
    if (terms.Allows(b, h, 0, j)) {
      score = terms.BiasAndTable(b, h, 0, j) + (terms.query != nullptr ? scores[j] : 0.0f);
      if (terms.u != nullptr) score += PositionScore(terms, b, h, j);
      if (terms.a != nullptr) score += FactorScore(terms, b, h, j);
    }
    scores[j] = score;
    largest = fmaxf(largest, score);
  }
  return largest;
}

// y = sum_j weights_j value_j / sum. Each thread sums eight columns over every `parts`-th key.
template <typename T>
__device__ void MixValues(const Forward<T>& call, int64_t b, int64_t h, int64_t keys,
                          const float* weights, float inverse_sum, DecodeStorage& shared) {
  const Terms<T>& terms = call.terms;
  const int groups = static_cast<int>(DivideUp(terms.head_size, kEight));
  const int parts = kDecodeThreads / groups;
  const int column = ThreadIndex() % groups * kEight, part = ThreadIndex() / groups;
  const auto left = static_cast<int>(terms.head_size - column);
  const int count = left < kEight ? left : kEight;
  Eight sum = {};
  if (part < parts) {
    const T* first =
        terms.value + b * terms.keys * terms.value_pitch + h * terms.head_size + column;
    for (int64_t j = part; j < keys; j += kAtOnce * parts) {
      const T* rows[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        rows[i] = first + (j + i * parts < keys ? j + i * parts : j) * terms.value_pitch;
      }
      Eight value[kAtOnce];
      LoadRows(rows, count, value);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (j + i * parts >= keys) break;
        const float weight = weights[j + i * parts];
#pragma unroll
        for (int e = 0; e < kEight; ++e) sum[e] += weight * value[i][e];
      }
    }
  }
#pragma unroll
  for (int e = 0; e < kEight; ++e) shared.sums[ThreadIndex()][e] = sum[e];
  SyncThreads();
  T* y = call.y + (b * terms.heads + h) * terms.head_size;
  for (int64_t k = ThreadIndex(); k < terms.head_size; k += kDecodeThreads) {
    float total = 0.0f;
    for (int p = 0; p < parts; ++p) total += shared.sums[p * groups + k / kEight][k % kEight];
    StoreResult(total * inverse_sum, y + k, call.accumulate_y);
  }
}

// One block per (example, head).
template <typename T>
__global__ void __launch_bounds__(kDecodeThreads) DecodeStepKernel(Forward<T> call) {
  auto& shared = Shared<DecodeStorage>();
  auto* scores = reinterpret_cast<float*>(SharedBytes() + sizeof(DecodeStorage));
  const Terms<T>& terms = call.terms;
  const int64_t h = BlockIndex() % terms.heads, b = BlockIndex() / terms.heads;
  const int64_t keys = ReadableKeys(terms);
  if (terms.query != nullptr) ScoreKeys(terms, b, h, keys, scores);
  SyncThreads();
  const float largest = BlockMax(FinishScores(terms, b, h, keys, scores), shared.of_warp);
  // If no key is allowed, any finite reference gives zeros.
  const float reference = largest == -INFINITY ? 0.0f : largest;
  float sum = 0.0f;
  for (int64_t j = ThreadIndex(); j < keys; j += kDecodeThreads) {
    scores[j] = expf(scores[j] - reference);
    sum += scores[j];
  }
  sum = BlockSum(sum, shared.of_warp);
  if (call.log_sum_exp != nullptr && ThreadIndex() == 0) {
    const float value = sum > 0.0f ? largest + logf(sum) : -INFINITY;
    StoreResult(value, call.log_sum_exp + BlockIndex(), call.accumulate_log_sum_exp);
  }
  if (call.y != nullptr) {
    MixValues(call, b, h, keys, scores, sum > 0.0f ? 1.0f / sum : 0.0f, shared);
  }
}

}  // namespace

bool IsDecodeStep(const Dimensions& z) {
  return z.queries == 1 && z.keys <= kMostKeys && z.head_size <= kDecodeThreads * kEight;
}

BoundKernel BindDecodeStep(const OpCall& call, const Dimensions& z) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call, z](const KernelArguments& arguments) {
    WithActivation(call.inputs[kValue].dtype, [&](auto type) {
      using T = decltype(type);
      Launch(arguments,
             {z.batch * z.heads, kDecodeThreads, sizeof(DecodeStorage) + z.keys * sizeof(float)},
             DecodeStepKernel<T>, Forward<T>::Of(call, z, arguments));
    });
  };
  return kernel;
}

}  // namespace syntra::attention
