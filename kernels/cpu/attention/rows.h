// SPDX-License-Identifier: Apache-2.0
// The parts of attention that are not matrix products, row by row on a tile of scores: adding the
// table, the bias and the outer product a b, masking, softmax and their gradients. A tile holds the
// f32 scores of a block of queries of one (example, head) against a prefix of the keys.
#pragma once

#include <cstdint>
#include <span>

#include "core/dtype.h"
#include "kernels/cpu/attention/blocks.h"

namespace syntra::attention {

// Rows of a head in an activation, or of a matrix of its gradients: `count` rows of `width`
// elements. Their first elements are `stride` elements apart.
struct HeadRows {
  DType dtype = DType::kF32;
  void* data = nullptr;  // null: absent
  int64_t stride = 0, count = 0, width = 0;
};

// The score terms of one (example, head) that are not products of features, and its mask. Absent
// terms are null.
struct RowTerms {
  const float* table;  // the head's [M, N]; stride 0: one row for all queries
  int64_t table_stride;
  const float* bias;                               // the head's entry for key - query = 0
  HeadRows a, b;                                   // of all queries: Na and Nb wide
  const int32_t *query_segments, *key_segments;    // null: no mask
  const int32_t *query_positions, *key_positions;  // null: the row is the position
  const int32_t* prefix_ends;                      // of the queries; null: none
  int64_t extent;                                  // with positions: the number of key positions
  int64_t start;                                   // row number of query 0
  Pattern pattern;
  const int32_t* key_blocks;  // the head's blocks of `block` rows, blocks_read for each of queries
  int64_t block, blocks_read;
};

// Queries first, first + step, ... against the keys of `runs`, or if these are empty [0, keys).
struct Tile {
  int64_t first, rows, keys;
  int64_t step;
  std::span<const RowRun> runs;
  int64_t stride;  // elements between rows, in every matrix of the tile
  float* scores;
  float* position_scores;  // with positions: u . p by position, [rows, extent]; null: no such term
  float* row_scratch;      // RowScratchFloats() elements
};

constexpr int64_t RowScratchFloats(const int64_t extent, const int64_t a_size,
                                   const int64_t b_size) {
  return extent + 2 * (a_size + b_size) + 64;
}

// Adds the terms, then sets scores := exp(score - row maximum), or 0 if the key is not allowed. In
// bf16 the result goes to `rounded` instead. Also writes log_sum_exp and 1 / sum of each row; for a
// row without allowed keys they are -inf and 0. Without `inverse_sum`, rows are divided by their
// sum.
void Softmax(const RowTerms& terms, const Tile& tile, void* rounded, float* log_sum_exp,
             float* inverse_sum);

// Adds the terms, then sets scores := exp(score - log_sum_exp), or 0 if the key is not allowed.
// Also writes a bf16 copy to `rounded` unless it is null.
void Probabilities(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                   void* rounded);

// row_dots[i] = dy_i . y_i, rows of `width` elements. Since y_i = sum_j p_ij v_j and dp_ij = dy_i .
// v_j, it is sum_j p_ij dp_ij, which the gradient of softmax subtracts.
void RowDots(const HeadRows& dy, const HeadRows& y, float* row_dots);

// Where ScoreGradient stores probabilities * (d_scores - row_dot), the gradient of the scores.
struct ScoreGradientUse {
  bool keep;      // whether to overwrite d_scores with it
  void* rounded;  // for a bf16 copy; or null
  float* bias;    // the entry for key - query = 0 of the bias's gradient, which it adds to; or null
};
void ScoreGradient(const Tile& tile, float* d_scores, const float* row_dots,
                   const ScoreGradientUse& use);

// Where the gradients of the terms go; null: not needed.
struct RowGradients {
  float* table;  // in the layout of the table
  HeadRows a, b;
  bool accumulate_a, accumulate_b;
  // With positions, d_scores summed by key position, [rows, extent], for the gradients of u and p.
  float* position_scores;
  void* rounded_position_scores;  // bf16 copy
};

// Adds the gradient of the scores to the gradients of the terms.
void SpreadGradient(const RowTerms& terms, const Tile& tile, const float* d_scores,
                    const RowGradients& gradients);

// to[i] (+)= scale[i] * from[i]; the rows of `from` are `stride` elements apart. Null scale: 1.
void StoreRows(const float* from, int64_t stride, const float* scale, const HeadRows& to,
               bool accumulate);

// Copies rows to `to`, where they are `stride` elements apart.
void GatherRows(const HeadRows& from, void* to, int64_t stride);

// out[i] = in[i], rounded from f32 to bf16.
void RoundToBFloat16(const float* in, void* out, int64_t count);

// to[i] += from[i].
void AddTo(float* to, const float* from, int64_t count);

// The functions below are products without packing, for few queries.
// scores[i,j] = q_i . k_j for the rows and keys of the tile.
void DotRows(const HeadRows& query, const HeadRows& key, const Tile& tile);
// scores[i,n] += sum_f u_i[f] p[f,n] for n < count; rows of p and of scores are `position_stride`
// and `stride` elements apart.
void AddFeatureRows(const HeadRows& u, const float* positions, int64_t position_stride,
                    float* scores, int64_t stride, int64_t count);
// out[i] = sum_j scores[i,j] v_j, dense rows.
void WeightRows(const Tile& tile, const HeadRows& value, float* out);

}  // namespace syntra::attention
