// SPDX-License-Identifier: Apache-2.0
// The products of shared attention (shared.h) as all GPUs compute them: those of E or its
// transpose with activations, and the sums of dS over the batch.
#pragma once

#include "base/divide.h"
#include "kernels/cuda/attention/batch_parts.h"
#include "kernels/cuda/attention/shared.h"

namespace syntra::attention {

// 128 rows of the result and the head's columns of kExamples examples side by side. Rows of the
// result are queries and the inner elements keys; if transposed, the other way round.
template <typename T, bool kTransposed, int kExamples>
struct MixTile {
  const SharedScores<T>& scores;
  int64_t h;
  int first_row;
  int64_t first_example;
  int inner_begin, inner_end;  // where E and the examples are not all zero
  int inner_rows[kExamples];   // of each example: those that count for the block's rows

  __device__ MixTile(const SharedScores<T>& scores, int64_t h, int first_row, int64_t first_example)
      : scores(scores), h(h), first_row(first_row), first_example(first_example) {
    inner_begin = kTransposed && scores.causal ? first_row : 0;
    inner_end = inner_begin;
#pragma unroll
    for (int e = 0; e < kExamples; ++e) {
      const int64_t b = first_example + e;
      const bool any = b < scores.batch && scores.key_lengths[b] > (kTransposed ? first_row : 0);
      inner_rows[e] = any ? InnerRowsOf(b) : 0;
      if (inner_rows[e] > inner_end) inner_end = inner_rows[e];
    }
    const int seen = first_row + kSide;  // number of keys that the block's last query sees
    if (!kTransposed && scores.causal && seen < inner_end) inner_end = seen;
  }

  __device__ int64_t Rows() const { return kTransposed ? scores.keys : scores.queries; }
  __device__ int64_t InnerRows() const { return kTransposed ? scores.queries : scores.keys; }
  __device__ bool Fits(int64_t b) const { return b < scores.batch && scores.Fits(b); }
  // The number of an example's inner rows that count.
  __device__ int InnerRowsOf(int64_t b) const {
    return !Fits(b) ? 0 : kTransposed ? scores.query_lengths[b] : scores.key_lengths[b];
  }
  // An activation's element in a row of one of its two lengths.
  __device__ int64_t ElementOf(int64_t b, int64_t row, int64_t rows, int64_t column) const {
    return ((b * rows + row) * scores.heads + h) * scores.head_size + column;
  }
  // The factor of a row of the result: it divides the row by the sum of its exponentials, or is
  // zero if the row's key is padding.
  __device__ float Factor(int64_t b, int64_t row) const {
    if (b >= scores.batch || row >= Rows()) return 0.0f;
    if constexpr (kTransposed) return row < scores.key_lengths[b] ? 1.0f : 0.0f;
    return scores.inverse_sums[scores.RowOf(b, h, row)];
  }
};

// The parts of the sums of dS, [parts, H, T, stride]. Where E is zero they are not used: there they
// may lack products.
template <typename T>
struct ScoreSums {
  SharedScores<T> scores;
  int64_t parts;
  float* sums;

  __device__ float* At(int64_t part, int64_t h, int64_t i) const {
    return sums + ((part * scores.heads + h) * scores.queries + i) * scores.stride;
  }
  // dS of `count` keys. The first key is a multiple of eight.
  __device__ Eight Gradients(int64_t h, int64_t i, int64_t key, int count) const {
    const Eight e = LoadEight(scores.Exponentials(h, i) + key, count);
    Eight result = {};
    for (int64_t part = 0; part < parts; ++part) {
      result += LoadEight(At(part, h, i) + key, count);
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) result[k] = e[k] > 0.0f ? result[k] * e[k] : 0.0f;
    return result;
  }
  __device__ float Gradient(int64_t h, int64_t i, int64_t key) const {
    const float e = ToFloat(scores.Exponentials(h, i)[key]);
    float sum = 0.0f;
    if (!(e > 0.0f)) return sum;
    for (int64_t part = 0; part < parts; ++part) sum += At(part, h, i)[key];
    return sum * e;
  }
};

}  // namespace syntra::attention
