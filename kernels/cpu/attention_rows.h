// SPDX-License-Identifier: Apache-2.0
// The parts of attention that are not matrix products, row by row over a tile of scores: adding
// table, bias and outer-product terms, masking, softmax and their gradients. A tile holds a block
// of queries of one (example, head) against a prefix of the keys, in f32.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace syntra::attention {

// The score terms of one (example, head) that are no products of features, and its mask. Absent
// terms are null.
struct RowTerms {
  DType dtype;         // of a and b
  const float* table;  // the head's [M, N]; stride 0: one row for all queries
  int64_t table_stride;
  const float* bias;                               // the head's, at difference 0 of key and query
  const void *a, *b;                               // the head's columns of query 0
  int64_t a_size, b_size;                          // Na, Nb
  int64_t a_stride, b_stride;                      // elements from one query to the next
  const int32_t *query_segments, *key_segments;    // null: all allowed
  const int32_t *query_positions, *key_positions;  // null: by row
  int64_t extent;  // with positions: how many key positions there are
  int64_t start;   // row number of query 0
  bool causal;
};

// Queries [first, first + rows) against keys [0, keys).
struct Tile {
  int64_t first, rows, keys;
  int64_t stride;  // elements from row to row; of every matrix of the tile
  float* scores;
  float* position_scores;  // with positions: u . p by position, [rows, extent]; null: no such term
  float* row_scratch;      // RowScratchFloats()
};

constexpr int64_t RowScratchFloats(const int64_t extent, const int64_t a_size,
                                   const int64_t b_size) {
  return extent + 2 * (a_size + b_size) + 64;
}

// Adds the terms, then scores := exp(score - row maximum), 0 where not allowed; in bf16 the result
// goes to `rounded` instead. Rows with nothing allowed become 0. Writes per row log_sum_exp (-inf
// where nothing is allowed) and 1 / sum (0 there). `normalize`: rows are divided by their sum.
void Softmax(const RowTerms& terms, const Tile& tile, void* rounded, bool normalize,
             float* log_sum_exp, float* inverse_sum);

// Adds the terms, then scores := exp(score - log_sum_exp), 0 where not allowed, and a rounded copy
// if that is wanted.
void Probabilities(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                   void* rounded);

// means[i] = dy_i . y_i, rows of `width` elements.
void RowDots(DType dtype, const void* dy, const void* y, int64_t stride, int64_t rows,
             int64_t width, float* means);

// What is wanted of probabilities * (d_scores - mean), the gradient of the scores.
struct ScoreGradientUse {
  bool keep;      // in place of d_scores
  void* rounded;  // a bf16 copy; null: none
  float* bias;  // the sums over equal differences of key and query, added at difference 0; or null
};
void ScoreGradient(const Tile& tile, float* d_scores, const float* means,
                   const ScoreGradientUse& use);

// Where the gradients of the terms go; null: not wanted. Laid out as the terms.
struct RowGradients {
  float* table;
  void *a, *b;
  bool accumulate_a, accumulate_b;
  // With positions: d_scores summed by key position, [rows, extent], for the gradients of u and p.
  float* position_scores;
  void* rounded_position_scores;  // bf16 copy
};

void SpreadGradient(const RowTerms& terms, const Tile& tile, const float* d_scores,
                    const RowGradients& gradients);

// out[i] (+)= scale[i] * in[i], from rows of f32 to rows of `dtype`; null scale: 1.
void StoreRows(DType dtype, const float* in, int64_t in_stride, const float* scale, void* out,
               int64_t out_stride, int64_t rows, int64_t width, bool accumulate);

// Gathers strided rows into dense ones.
void GatherRows(DType dtype, const void* in, int64_t in_stride, void* out, int64_t out_stride,
                int64_t rows, int64_t width);

// in[i], f32, rounded to bf16.
void RoundToBFloat16(const float* in, void* out, int64_t count);

// to[i] += from[i].
void AddTo(float* to, const float* from, int64_t count);

// Few queries: products without a packed kernel. scores[i,j] (+)= q_i . k_j over rows of `width`.
void DotRows(DType dtype, const void* query, int64_t query_stride, const void* key,
             int64_t key_stride, int64_t width, const Tile& tile);
// scores[i,n] += sum_f u_i[f] p[f,n], n < count.
void AddFeatureRows(DType dtype, const void* u, int64_t u_stride, const float* positions,
                    int64_t position_stride, int64_t features, float* scores, int64_t stride,
                    int64_t rows, int64_t count);
// out[i] = sum_j scores[i,j] v_j, dense rows.
void WeightRows(DType dtype, const Tile& tile, const void* value, int64_t value_stride,
                int64_t width, float* out);

}  // namespace syntra::attention
