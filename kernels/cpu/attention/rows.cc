// SPDX-License-Identifier: Apache-2.0
// The loops over rows of attention, compiled for each instruction set of Highway; the best is
// chosen at run time.
#include "kernels/cpu/attention/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/simd_targets.h"
#include "core/tensor.h"
#include "kernels/cpu/prefetch.h"

#ifndef SYNTRA_KERNELS_CPU_ATTENTION_ROWS_ONCE
#define SYNTRA_KERNELS_CPU_ATTENTION_ROWS_ONCE
namespace syntra::attention {
namespace {

// A head's rows are heads * width elements apart, which the processor's prefetchers do not detect.
constexpr int64_t kRowsAhead = 8;

}  // namespace
}  // namespace syntra::attention
#endif  // SYNTRA_KERNELS_CPU_ATTENTION_ROWS_ONCE

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/rows.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra::attention::HWY_NAMESPACE {
namespace {

using namespace syntra::HWY_NAMESPACE;
using syntra::HWY_NAMESPACE::Load;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// x += scale * y.
template <typename T>
HWY_INLINE void AddScaled(float* x, const T* y, float scale, int64_t count) {
  const FloatVector s = hn::Set(FloatTag(), scale);
  VectorLoop(count, [=](int64_t j, auto lanes) {
    Store(hn::MulAdd(s, Load(y + j, lanes), Load(x + j, lanes)), x + j, lanes);
  });
}

HWY_INLINE void Add(float* x, const float* y, int64_t count) {
  VectorLoop(count, [=](int64_t j, auto lanes) {
    Store(hn::Add(Load(y + j, lanes), Load(x + j, lanes)), x + j, lanes);
  });
}

template <typename T, typename U>
HWY_INLINE void Convert(const T* from, U* to, int64_t count) {
  VectorLoop(count, [=](int64_t j, auto lanes) { Store(Load(from + j, lanes), to + j, lanes); });
}

using Integers = hn::RebindToSigned<FloatTag>;

HWY_INLINE hn::Vec<Integers> Load(const int32_t* from, Whole) {
  return hn::LoadU(Integers(), from);
}
HWY_INLINE hn::Vec<Integers> Load(const int32_t* from, Part part) {
  int32_t lanes[hn::MaxLanes(Integers())] = {};
  std::memcpy(lanes, from, part.count * sizeof(int32_t));
  return Load(lanes, Whole());
}

// x[j] += y[index[j]].
HWY_INLINE void AddIndexed(float* x, const float* y, const int32_t* index, int64_t count) {
  VectorLoop(count, [=](int64_t j, auto lanes) {
    const FloatVector gathered = hn::GatherIndex(FloatTag(), y, Load(index + j, lanes));
    Store(hn::Add(Load(x + j, lanes), gathered), x + j, lanes);
  });
}

// x[j] := -inf where labels[j] is not `label`.
HWY_INLINE void Mask(float* x, const int32_t* labels, int32_t label, int64_t count) {
  const auto wanted = hn::Set(Integers(), label);
  VectorLoop(count, [=](int64_t j, auto lanes) {
    const auto same = hn::RebindMask(FloatTag(), hn::Eq(Load(labels + j, lanes), wanted));
    Store(hn::IfThenElse(same, Load(x + j, lanes), hn::Set(FloatTag(), kMinusInfinity)), x + j,
          lanes);
  });
}

// The scores of a row of a tile in columns [begin, begin + count); in others nothing is allowed.
// The bias, if there is one, is added when they are read.
struct Scores {
  float* x;
  const float* bias;
  int64_t begin, count;

  template <typename Lanes>
  HWY_INLINE FloatVector At(int64_t j, Lanes lanes) const {
    const FloatVector score = Load(x + j, lanes);
    return bias ? hn::Add(score, Load(bias + j, lanes)) : score;
  }
};

HWY_INLINE FloatVector MinusInfinityBeyond(FloatVector value, Whole) { return value; }
HWY_INLINE FloatVector MinusInfinityBeyond(FloatVector value, Part part) {
  const FloatTag d;
  return hn::IfThenElse(hn::FirstN(d, part.count), value, hn::Set(d, kMinusInfinity));
}

HWY_INLINE float Maximum(const Scores scores) {
  FloatVector largest = hn::Set(FloatTag(), kMinusInfinity);
  VectorLoop(scores.count, [scores, &largest](int64_t j, auto lanes) {
    largest = hn::Max(largest, MinusInfinityBeyond(scores.At(j, lanes), lanes));
  });
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), largest));
}

// A maximum passes over NaN.
HWY_INLINE bool HasNaN(const Scores scores) {
  bool found = false;
  VectorLoop(scores.count, [&](int64_t j, auto lanes) {
    const FloatVector valid = MinusInfinityBeyond(scores.At(j, lanes), lanes);
    found |= !hn::AllFalse(FloatTag(), hn::IsNaN(valid));
  });
  return found;
}

// e[j] = exp(score[j] - offset). Overwrites the scores if `kKeep`, writes to `rounded` unless it is
// null, and returns the sum.
template <bool kKeep>
HWY_INLINE float Exponentials(const Scores scores, float offset, BFloat16* rounded) {
  const FloatVector shift = hn::Set(FloatTag(), offset);
  FloatVector sum = hn::Zero(FloatTag());
  VectorLoop(scores.count, [=, &sum](int64_t j, auto lanes) {
    const FloatVector e = FastExp(hn::Sub(scores.At(j, lanes), shift));
    sum = hn::Add(sum, Valid(e, lanes));
    if constexpr (kKeep) Store(e, scores.x + j, lanes);
    if (rounded) Store(e, rounded + j, lanes);
  });
  return SumLanes(sum);
}

// How many keys of the tile query `first + i` may see, apart from segments.
HWY_INLINE int64_t KeyLimit(const RowTerms& terms, const Tile& tile, int64_t i) {
  if (!terms.pattern.causal) return tile.keys;
  const int64_t query = tile.first + i;
  int64_t limit = query + terms.start + 1;
  if (terms.prefix_ends) limit = std::max<int64_t>(limit, terms.prefix_ends[query]);
  return std::clamp<int64_t>(limit, 0, tile.keys);
}

template <typename T>
HWY_INLINE T* Row(const HeadRows& rows, int64_t row) {
  return static_cast<T*>(rows.data) + row * rows.stride;
}

HWY_INLINE const float* TableRow(const RowTerms& terms, int64_t query) {
  const int64_t m = terms.query_positions ? terms.query_positions[query] : query + terms.start;
  return terms.table + m * terms.table_stride;
}

// row[y * Na + x] += a[x] * b[y] for indices below `count`.
template <typename T>
HWY_INLINE void AddOuter(const RowTerms& terms, int64_t query, float* row, float* scratch,
                         int64_t count) {
  const int64_t a_size = terms.a.width, b_size = terms.b.width;
  float *a = scratch, *b = scratch + a_size;
  Convert(Row<T>(terms.a, query), a, a_size);
  Convert(Row<T>(terms.b, query), b, b_size);
  for (int64_t n = 0, y = 0; n < count; n += a_size, ++y) {
    AddScaled(row + n, a, b[y], std::min(a_size, count - n));
  }
}

template <typename T>
HWY_INLINE void AddTerms(const RowTerms& terms, const Tile& tile, int64_t i, int64_t limit) {
  const int64_t query = tile.first + i;
  float* row = tile.scores + i * tile.stride;
  const bool by_position = terms.key_positions != nullptr;
  const bool any = terms.table || terms.a.data || tile.position_scores;
  float* target = row;
  int64_t count = limit;
  if (by_position && any) {
    target = tile.row_scratch;
    count = terms.extent;
    if (tile.position_scores) {
      std::memcpy(target, tile.position_scores + i * terms.extent, count * sizeof(float));
    } else {
      std::fill_n(target, count, 0.0f);
    }
  }
  if (terms.table) Add(target, TableRow(terms, query), count);
  if (terms.a.data) AddOuter<T>(terms, query, target, tile.row_scratch + terms.extent, count);
  if (target != row) AddIndexed(row, target, terms.key_positions, limit);
  if (terms.query_segments) {
    const int32_t segment = terms.query_segments[query];
    if (segment == 0) {
      std::fill_n(row, limit, kMinusInfinity);
    } else {
      Mask(row, terms.key_segments, segment, limit);
    }
  }
}

// Sets to zero the keys of a row for which nothing was computed.
template <typename T>
HWY_INLINE void ClearFrom(T* row, int64_t begin, int64_t end) {
  if (begin < end) std::memset(static_cast<void*>(row + begin), 0, (end - begin) * sizeof(T));
}
template <typename T>
HWY_INLINE void ClearAround(const Scores& scores, T* row, int64_t keys) {
  ClearFrom(row, 0, scores.begin);
  ClearFrom(row, scores.begin + scores.count, keys);
}

HWY_INLINE void ScaleRow(float* row, float scale, int64_t count) {
  const FloatVector s = hn::Set(FloatTag(), scale);
  VectorLoop(count, [=](int64_t j, auto lanes) {
    Store(hn::Mul(s, Load(row + j, lanes)), row + j, lanes);
  });
}

// Hides the keys that the window or the blocks leave out.
HWY_INLINE void HideOutside(const RowTerms& terms, int64_t query, float* row, int64_t count) {
  const int32_t* read =
      terms.key_blocks ? terms.key_blocks + query / terms.block * terms.blocks_read : nullptr;
  const int64_t block = read ? terms.block : count;
  for (int64_t first = 0, number = 0; first < count; first += block, ++number) {
    const int64_t end = std::min(first + block, count);
    const bool is_read =
        !read || std::find(read, read + terms.blocks_read, number) != read + terms.blocks_read;
    if (!is_read) {
      std::fill(row + first, row + end, kMinusInfinity);
      continue;
    }
    for (int64_t j = first; j < end; ++j) {
      if (!terms.pattern.Allows(query + terms.start, j)) row[j] = kMinusInfinity;
    }
  }
}

// The scores of row i of a tile whose columns are runs of keys, with the bias.
HWY_INLINE Scores ScoresOfRuns(const RowTerms& terms, const Tile& tile, int64_t i) {
  const int64_t query = tile.first + i * tile.step;
  const int32_t segment = terms.query_segments ? terms.query_segments[query] : 0;
  float* row = tile.scores + i * tile.stride;
  int64_t begin = tile.keys, end = 0, column = 0;
  for (const RowRun& run : tile.runs) {
    float* x = row + column;
    const Columns read = ColumnsOf(terms.pattern, query, run);
    const int64_t count = read.end - read.begin, first = run.first + read.begin * run.step;
    std::fill_n(x, read.begin, kMinusInfinity);
    std::fill(x + read.end, x + run.count, kMinusInfinity);
    if (count > 0) {
      begin = std::min(begin, column + read.begin);
      end = column + read.end;
      x += read.begin;
      if (terms.bias && run.step == 1) Add(x, terms.bias + first - query, count);
      if (terms.query_segments && run.step == 1) {
        Mask(x, terms.key_segments + first, segment, count);
      }
      for (int64_t k = 0; run.step > 1 && k < count; ++k) {
        const int64_t key = first + k * run.step;
        if (terms.bias) x[k] += terms.bias[key - query];
        if (terms.query_segments && terms.key_segments[key] != segment) x[k] = kMinusInfinity;
      }
    }
    column += run.count;
  }
  if (begin >= end || (terms.query_segments && segment == 0)) return {row, nullptr, 0, 0};
  return {row + begin, nullptr, begin, end - begin};
}

// The scores of row i of the tile, with all terms added except the bias that they name.
template <typename T>
HWY_INLINE Scores ScoresOf(const RowTerms& terms, const Tile& tile, int64_t i) {
  if (!tile.runs.empty()) return ScoresOfRuns(terms, tile, i);
  const int64_t limit = KeyLimit(terms, tile, i), query = tile.first + i;
  float* row = tile.scores + i * tile.stride;
  AddTerms<T>(terms, tile, i, limit);
  if (terms.pattern.is_window() || terms.key_blocks) HideOutside(terms, query, row, limit);
  return {row, terms.bias ? terms.bias - query : nullptr, 0, limit};
}

template <typename T>
void SoftmaxOf(const RowTerms& terms, const Tile& tile, BFloat16* rounded, float* log_sum_exp,
               float* inverse_sum) {
  const bool normalize = inverse_sum == nullptr;
  for (int64_t i = 0; i < tile.rows; ++i) {
    BFloat16* rounded_row = rounded ? rounded + i * tile.stride : nullptr;
    Scores scores = ScoresOf<T>(terms, tile, i);
    const float maximum = Maximum(scores);
    const bool none = maximum == kMinusInfinity && !HasNaN(scores);
    if (none) scores.count = 0;
    // If rows are normalised, probabilities are rounded only once, after the division.
    BFloat16* rounded_scores = rounded_row ? rounded_row + scores.begin : nullptr;
    const float sum = normalize || !rounded_row
                          ? Exponentials<true>(scores, maximum, nullptr)
                          : Exponentials<false>(scores, maximum, rounded_scores);
    const float inverse = none ? 0.0f : 1.0f / sum;
    if (normalize) {
      ScaleRow(scores.x, inverse, scores.count);
      if (rounded_row) Convert(scores.x, rounded_scores, scores.count);
    } else {
      inverse_sum[i] = inverse;
    }
    if (rounded_row) {
      ClearAround(scores, rounded_row, tile.keys);
    } else {
      ClearAround(scores, tile.scores + i * tile.stride, tile.keys);
    }
    log_sum_exp[i] = none ? kMinusInfinity : maximum + std::log(sum);
  }
}

template <typename T>
void ProbabilitiesOf(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                     BFloat16* rounded) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    BFloat16* rounded_row = rounded ? rounded + i * tile.stride : nullptr;
    float* row = tile.scores + i * tile.stride;
    Scores scores{row, nullptr, 0, 0};
    if (log_sum_exp[i] != kMinusInfinity) {
      scores = ScoresOf<T>(terms, tile, i);
      const float sum = Exponentials<true>(scores, log_sum_exp[i],
                                           rounded_row ? rounded_row + scores.begin : nullptr);
      // The rounding error of a large log_sum_exp scales the whole row. Dividing by the row's sum
      // removes it. In bf16 it is smaller than the rounding of the result.
      if (!rounded_row) ScaleRow(scores.x, 1.0f / sum, scores.count);
    }
    ClearAround(scores, row, tile.keys);
    if (rounded_row) ClearAround(scores, rounded_row, tile.keys);
  }
}

template <typename T>
void RowDotsOf(const HeadRows dy, const HeadRows y, float* row_dots) {
  for (int64_t i = 0; i < dy.count; ++i) row_dots[i] = Dot(Row<T>(dy, i), Row<T>(y, i), dy.width);
}

// Adds a row of score gradients to the bias's gradient, whose entry for difference 0 is `bias`.
HWY_INLINE void AddRunsToBias(const Tile& tile, int64_t i, const float* ds, float* bias) {
  const int64_t query = tile.first + i * tile.step;
  for (const RowRun& run : tile.runs) {
    if (run.first >= 0 && run.step == 1) {
      Add(bias + run.first - query, ds, run.count);
    } else if (run.first >= 0) {
      for (int64_t k = 0; k < run.count; ++k) bias[run.first + k * run.step - query] += ds[k];
    }
    ds += run.count;
  }
}

void ScoreGradientOf(const Tile& tile, float* d_scores, const float* row_dots,
                     const ScoreGradientUse& use) {
  auto* rounded = static_cast<BFloat16*>(use.rounded);
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* p = tile.scores + i * tile.stride;
    float* ds = d_scores + i * tile.stride;
    BFloat16* rounded_row = rounded ? rounded + i * tile.stride : nullptr;
    float* bias = use.bias && tile.runs.empty() ? use.bias - (tile.first + i) : nullptr;
    const FloatVector row_dot = hn::Set(FloatTag(), row_dots[i]);
    VectorLoop(tile.keys, [=, keep = use.keep](int64_t j, auto lanes) {
      const FloatVector x = hn::Mul(Load(p + j, lanes), hn::Sub(Load(ds + j, lanes), row_dot));
      if (keep) Store(x, ds + j, lanes);
      if (rounded_row) Store(x, rounded_row + j, lanes);
      if (bias) Store(hn::Add(x, Load(bias + j, lanes)), bias + j, lanes);
    });
    if (use.bias && !tile.runs.empty()) AddRunsToBias(tile, i, ds, use.bias);
  }
}

template <typename T>
HWY_INLINE void StoreRow(const float* in, float scale, T* out, int64_t width, bool accumulate) {
  const FloatVector s = hn::Set(FloatTag(), scale);
  VectorLoop(width, [=](int64_t j, auto lanes) {
    StoreResult(hn::Mul(s, Load(in + j, lanes)), out + j, lanes, accumulate);
  });
}

// Computes the gradients of a and b from `d`, the gradient of their products.
template <typename T>
HWY_INLINE void SpreadOuter(const RowTerms& terms, const RowGradients& gradients, int64_t query,
                            const float* d, float* scratch, int64_t count) {
  const int64_t a_size = terms.a.width, b_size = terms.b.width;
  float *a = scratch, *b = a + a_size, *da = b + b_size, *db = da + a_size;
  Convert(Row<T>(terms.a, query), a, a_size);
  Convert(Row<T>(terms.b, query), b, b_size);
  std::fill_n(da, a_size + b_size, 0.0f);
  for (int64_t n = 0, y = 0; n < count; n += a_size, ++y) {
    const int64_t width = std::min(a_size, count - n);
    AddScaled(da, d + n, b[y], width);
    db[y] = Dot(a, d + n, width);
  }
  if (gradients.a.data) {
    StoreRow(da, 1.0f, Row<T>(gradients.a, query), a_size, gradients.accumulate_a);
  }
  if (gradients.b.data) {
    StoreRow(db, 1.0f, Row<T>(gradients.b, query), b_size, gradients.accumulate_b);
  }
}

template <typename T>
void SpreadGradientOf(const RowTerms& terms, const Tile& tile, const float* d_scores,
                      const RowGradients& gradients) {
  const bool by_position = terms.key_positions != nullptr;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const int64_t query = tile.first + i;
    const float* ds = d_scores + i * tile.stride;
    const float* d = ds;
    int64_t count = tile.keys;
    if (by_position) {
      float* by = tile.row_scratch;
      count = terms.extent;
      std::fill_n(by, count, 0.0f);
      for (int64_t j = 0; j < tile.keys; ++j) by[terms.key_positions[j]] += ds[j];
      d = by;
      if (gradients.position_scores) {
        std::memcpy(gradients.position_scores + i * count, by, count * sizeof(float));
      }
      if (gradients.rounded_position_scores) {
        Convert(by, static_cast<BFloat16*>(gradients.rounded_position_scores) + i * count, count);
      }
    }
    if (gradients.table) {
      Add(gradients.table + (TableRow(terms, query) - terms.table), d, count);
    }
    if (gradients.a.data || gradients.b.data) {
      SpreadOuter<T>(terms, gradients, query, d, tile.row_scratch + terms.extent, count);
    }
  }
}

template <typename T>
void StoreRowsOf(const float* from, int64_t stride, const float* scale, const HeadRows to,
                 bool accumulate) {
  for (int64_t i = 0; i < to.count; ++i) {
    PrefetchRow(Row<T>(to, i + kRowsAhead), to.width * sizeof(T));
    StoreRow(from + i * stride, scale ? scale[i] : 1.0f, Row<T>(to, i), to.width, accumulate);
  }
}

template <typename T>
void DotRowsOf(const HeadRows query, const HeadRows key, const Tile& tile) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const T* q = Row<T>(query, i);
    float* row = tile.scores + i * tile.stride;
    for (int64_t j = 0; j < tile.keys; ++j) row[j] = Dot(q, Row<T>(key, j), key.width);
  }
}

template <typename T>
void AddFeatureRowsOf(const HeadRows u, const float* positions, int64_t position_stride,
                      float* scores, int64_t stride, int64_t count) {
  for (int64_t i = 0; i < u.count; ++i) {
    for (int64_t f = 0; f < u.width; ++f) {
      float scale;
      Convert(Row<T>(u, i) + f, &scale, 1);
      AddScaled(scores + i * stride, positions + f * position_stride, scale, count);
    }
  }
}

template <typename T>
void WeightRowsOf(const Tile& tile, const HeadRows value, float* out) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* p = tile.scores + i * tile.stride;
    float* y = out + i * value.width;
    std::fill_n(y, value.width, 0.0f);
    for (int64_t j = 0; j < tile.keys; ++j) {
      if (p[j] != 0.0f) AddScaled(y, Row<T>(value, j), p[j], value.width);
    }
  }
}

}  // namespace

// The entry points. They select the element types once per tile.
void EnterSoftmax(const RowTerms& terms, const Tile& tile, void* rounded, float* log_sum_exp,
                  float* inverse_sum) {
  WithActivation(terms.a.dtype, [&](auto type) {
    SoftmaxOf<decltype(type)>(terms, tile, static_cast<BFloat16*>(rounded), log_sum_exp,
                              inverse_sum);
  });
}

void EnterProbabilities(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                        void* rounded) {
  WithActivation(terms.a.dtype, [&](auto type) {
    ProbabilitiesOf<decltype(type)>(terms, tile, log_sum_exp, static_cast<BFloat16*>(rounded));
  });
}

void EnterRowDots(const HeadRows& dy, const HeadRows& y, float* row_dots) {
  WithActivation(dy.dtype, [&](auto type) { RowDotsOf<decltype(type)>(dy, y, row_dots); });
}

void EnterScoreGradient(const Tile& tile, float* d_scores, const float* row_dots,
                        const ScoreGradientUse& use) {
  ScoreGradientOf(tile, d_scores, row_dots, use);
}

void EnterSpreadGradient(const RowTerms& terms, const Tile& tile, const float* d_scores,
                         const RowGradients& gradients) {
  WithActivation(terms.a.dtype, [&](auto type) {
    SpreadGradientOf<decltype(type)>(terms, tile, d_scores, gradients);
  });
}

void EnterStoreRows(const float* from, int64_t stride, const float* scale, const HeadRows& to,
                    bool accumulate) {
  WithActivation(to.dtype, [&](auto type) {
    StoreRowsOf<decltype(type)>(from, stride, scale, to, accumulate);
  });
}

void EnterRoundToBFloat16(const float* in, void* out, int64_t count) {
  Convert(in, static_cast<BFloat16*>(out), count);
}

void EnterAddTo(float* to, const float* from, int64_t count) { Add(to, from, count); }

void EnterDotRows(const HeadRows& query, const HeadRows& key, const Tile& tile) {
  WithActivation(query.dtype, [&](auto type) { DotRowsOf<decltype(type)>(query, key, tile); });
}

void EnterAddFeatureRows(const HeadRows& u, const float* positions, int64_t position_stride,
                         float* scores, int64_t stride, int64_t count) {
  WithActivation(u.dtype, [&](auto type) {
    AddFeatureRowsOf<decltype(type)>(u, positions, position_stride, scores, stride, count);
  });
}

void EnterWeightRows(const Tile& tile, const HeadRows& value, float* out) {
  WithActivation(value.dtype, [&](auto type) { WeightRowsOf<decltype(type)>(tile, value, out); });
}

}  // namespace syntra::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra::attention {

HWY_EXPORT(EnterSoftmax);
HWY_EXPORT(EnterProbabilities);
HWY_EXPORT(EnterRowDots);
HWY_EXPORT(EnterScoreGradient);
HWY_EXPORT(EnterSpreadGradient);
HWY_EXPORT(EnterStoreRows);
HWY_EXPORT(EnterRoundToBFloat16);
HWY_EXPORT(EnterAddTo);
HWY_EXPORT(EnterDotRows);
HWY_EXPORT(EnterAddFeatureRows);
HWY_EXPORT(EnterWeightRows);

void Softmax(const RowTerms& terms, const Tile& tile, void* rounded, float* log_sum_exp,
             float* inverse_sum) {
  HWY_DYNAMIC_DISPATCH(EnterSoftmax)(terms, tile, rounded, log_sum_exp, inverse_sum);
}
void Probabilities(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                   void* rounded) {
  HWY_DYNAMIC_DISPATCH(EnterProbabilities)(terms, tile, log_sum_exp, rounded);
}
void RowDots(const HeadRows& dy, const HeadRows& y, float* row_dots) {
  HWY_DYNAMIC_DISPATCH(EnterRowDots)(dy, y, row_dots);
}
void ScoreGradient(const Tile& tile, float* d_scores, const float* row_dots,
                   const ScoreGradientUse& use) {
  HWY_DYNAMIC_DISPATCH(EnterScoreGradient)(tile, d_scores, row_dots, use);
}
void SpreadGradient(const RowTerms& terms, const Tile& tile, const float* d_scores,
                    const RowGradients& gradients) {
  HWY_DYNAMIC_DISPATCH(EnterSpreadGradient)(terms, tile, d_scores, gradients);
}
void StoreRows(const float* from, int64_t stride, const float* scale, const HeadRows& to,
               bool accumulate) {
  HWY_DYNAMIC_DISPATCH(EnterStoreRows)(from, stride, scale, to, accumulate);
}
void GatherRows(const HeadRows& from, void* to, int64_t stride) {
  const int64_t element = SizeOf(from.dtype), bytes = from.width * element;
  const auto row = [&](int64_t i) {
    return static_cast<const std::byte*>(from.data) + i * from.stride * element;
  };
  for (int64_t i = 0; i < from.count; ++i) {
    PrefetchRow(row(i + kRowsAhead), bytes);
    std::memcpy(static_cast<std::byte*>(to) + i * stride * element, row(i), bytes);
  }
}
void RoundToBFloat16(const float* in, void* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(EnterRoundToBFloat16)(in, out, count);
}
void AddTo(float* to, const float* from, int64_t count) {
  HWY_DYNAMIC_DISPATCH(EnterAddTo)(to, from, count);
}
void DotRows(const HeadRows& query, const HeadRows& key, const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(EnterDotRows)(query, key, tile);
}
void AddFeatureRows(const HeadRows& u, const float* positions, int64_t position_stride,
                    float* scores, int64_t stride, int64_t count) {
  HWY_DYNAMIC_DISPATCH(EnterAddFeatureRows)(u, positions, position_stride, scores, stride, count);
}
void WeightRows(const Tile& tile, const HeadRows& value, float* out) {
  HWY_DYNAMIC_DISPATCH(EnterWeightRows)(tile, value, out);
}

}  // namespace syntra::attention
#endif  // HWY_ONCE
