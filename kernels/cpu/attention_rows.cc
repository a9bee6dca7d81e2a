// Row passes of attention, compiled for every instruction set of Highway and chosen at run time.
#include "kernels/cpu/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensor.h"

#ifndef SYNTRA_KERNELS_CPU_ATTENTION_ROWS_ONCE
#define SYNTRA_KERNELS_CPU_ATTENTION_ROWS_ONCE
namespace syntra::attention {
namespace {

// A head's rows lie heads * width apart, which the processor's own prefetchers do not follow.
// Reaching behind the end is harmless: a prefetch does not fault.
constexpr int64_t kRowsAhead = 8;

inline void PrefetchRow(const void* row, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) {
    __builtin_prefetch(static_cast<const std::byte*>(row) + at, 0, 2);
  }
}

}  // namespace
}  // namespace syntra::attention
#endif  // SYNTRA_KERNELS_CPU_ATTENTION_ROWS_ONCE

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syntra::attention::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
constexpr Floats kFloats;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

HWY_INLINE Vector Load(const float* from) { return hn::LoadU(kFloats, from); }
HWY_INLINE Vector Load(const BFloat16* from) {
  const hn::Rebind<uint16_t, Floats> halves;
  const hn::RebindToUnsigned<Floats> words;
  return hn::BitCast(kFloats,
                     hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, &from->bits))));
}

HWY_INLINE void Store(Vector x, float* to) { hn::StoreU(x, kFloats, to); }
// Round to nearest, ties to even; NaN stays NaN.
HWY_INLINE void Store(Vector x, BFloat16* to) {
  const hn::RebindToUnsigned<Floats> words;
  const hn::Rebind<uint16_t, Floats> halves;
  const auto bits = hn::BitCast(words, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000));
  const auto kept = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(x)), quiet, rounded);
  hn::StoreU(hn::TruncateTo(halves, hn::ShiftRight<16>(kept)), halves, &to->bits);
}

// The last, incomplete vector of a row goes through a full one on the stack. Missing lanes read 0.
template <typename T>
HWY_INLINE Vector LoadPart(const T* from, size_t count) {
  HWY_ALIGN T whole[hn::MaxLanes(kFloats)] = {};
  std::memcpy(whole, from, count * sizeof(T));
  return Load(whole);
}
template <typename T>
HWY_INLINE void StorePart(Vector x, T* to, size_t count) {
  HWY_ALIGN T whole[hn::MaxLanes(kFloats)];
  Store(x, whole);
  std::memcpy(to, whole, count * sizeof(T));
}

HWY_INLINE int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(kFloats)); }

// x += scale * y.
template <typename T>
HWY_INLINE void AddScaled(float* x, const T* y, float scale, int64_t count) {
  const Vector s = hn::Set(kFloats, scale);
  int64_t j = 0;
  for (; j + Lanes() <= count; j += Lanes()) Store(hn::MulAdd(s, Load(y + j), Load(x + j)), x + j);
  if (j < count) {
    const Vector sum = hn::MulAdd(s, LoadPart(y + j, count - j), LoadPart(x + j, count - j));
    StorePart(sum, x + j, count - j);
  }
}

HWY_INLINE void Add(float* x, const float* y, int64_t count) {
  int64_t j = 0;
  for (; j + Lanes() <= count; j += Lanes()) Store(hn::Add(Load(y + j), Load(x + j)), x + j);
  for (; j < count; ++j) x[j] += y[j];
}

template <typename T, typename U>
HWY_INLINE float Dot(const T* x, const U* y, int64_t count) {
  Vector even = hn::Zero(kFloats), odd = hn::Zero(kFloats);
  int64_t j = 0;
  for (; j + 2 * Lanes() <= count; j += 2 * Lanes()) {
    even = hn::MulAdd(Load(x + j), Load(y + j), even);
    odd = hn::MulAdd(Load(x + j + Lanes()), Load(y + j + Lanes()), odd);
  }
  for (; j + Lanes() <= count; j += Lanes()) even = hn::MulAdd(Load(x + j), Load(y + j), even);
  if (j < count) odd = hn::MulAdd(LoadPart(x + j, count - j), LoadPart(y + j, count - j), odd);
  return hn::GetLane(hn::SumOfLanes(kFloats, hn::Add(even, odd)));
}

template <typename T, typename U>
HWY_INLINE void Convert(const T* from, U* to, int64_t count) {
  int64_t j = 0;
  for (; j + Lanes() <= count; j += Lanes()) Store(Load(from + j), to + j);
  if (j < count) StorePart(LoadPart(from + j, count - j), to + j, count - j);
}

// x[j] += y[index[j]].
HWY_INLINE void AddIndexed(float* x, const float* y, const int32_t* index, int64_t count) {
  const hn::RebindToSigned<Floats> integers;
  int64_t j = 0;
  for (; j + Lanes() <= count; j += Lanes()) {
    const Vector gathered = hn::GatherIndex(kFloats, y, hn::LoadU(integers, index + j));
    Store(hn::Add(Load(x + j), gathered), x + j);
  }
  for (; j < count; ++j) x[j] += y[index[j]];
}

// x[j] := -inf where labels[j] is not `label`.
HWY_INLINE void Mask(float* x, const int32_t* labels, int32_t label, int64_t count) {
  const hn::RebindToSigned<Floats> integers;
  const auto wanted = hn::Set(integers, label);
  const Vector never = hn::Set(kFloats, kMinusInfinity);
  int64_t j = 0;
  for (; j + Lanes() <= count; j += Lanes()) {
    const auto same = hn::RebindMask(kFloats, hn::Eq(hn::LoadU(integers, labels + j), wanted));
    Store(hn::IfThenElse(same, Load(x + j), never), x + j);
  }
  for (; j < count; ++j) x[j] = labels[j] == label ? x[j] : kMinusInfinity;
}

HWY_INLINE float Maximum(const float* x, int64_t count) {
  Vector even = hn::Set(kFloats, kMinusInfinity), odd = even;
  int64_t j = 0;
  for (; j + 2 * Lanes() <= count; j += 2 * Lanes()) {
    even = hn::Max(even, Load(x + j));
    odd = hn::Max(odd, Load(x + j + Lanes()));
  }
  for (; j + Lanes() <= count; j += Lanes()) even = hn::Max(even, Load(x + j));
  float maximum = hn::GetLane(hn::MaxOfLanes(kFloats, hn::Max(even, odd)));
  for (; j < count; ++j) {
    if (!(x[j] <= maximum)) maximum = x[j];  // also where x[j] is NaN
  }
  return maximum;
}

// exp(x) for x of at most about 0, to 2e-7: 2^n e^r with |r| <= ln(2)/2, e^r by its Taylor
// polynomial of degree 7 (error 5e-9); below e^-86.6 it is 0. A third faster than the library's,
// which serves all x, and NaN stays NaN, where the library's 0 would hide that a run has diverged.
HWY_INLINE Vector ExpOfNegative(Vector x) {
  const hn::RebindToSigned<Floats> integers;
  const auto set = [](float c) { return hn::Set(kFloats, c); };
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const Vector shifted = hn::MulAdd(x, set(1.44269504f), set(12582912.0f));
  const Vector n = hn::Sub(shifted, set(12582912.0f));
  // ln(2) in two parts, the first short enough that its product with n is exact.
  Vector r = hn::NegMulAdd(n, set(0.693145752f), x);
  r = hn::NegMulAdd(n, set(1.42860677e-6f), r);
  const Vector r2 = hn::Mul(r, r);
  const Vector c23 = hn::MulAdd(r, set(1.0f / 6), set(1.0f / 2));
  const Vector c45 = hn::MulAdd(r, set(1.0f / 120), set(1.0f / 24));
  const Vector c67 = hn::MulAdd(r, set(1.0f / 5040), set(1.0f / 720));
  const Vector high = hn::MulAdd(hn::MulAdd(c67, r2, c45), r2, c23);
  const Vector e = hn::Add(hn::MulAdd(high, r2, r), set(1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integers, shifted));
  const Vector scaled = hn::BitCast(kFloats, hn::Add(hn::BitCast(integers, e), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, set(-86.6f)), scaled);
}

// x[j] := exp(x[j] - offset), also to `rounded` if it is there. Returns the sum.
template <bool kKeep, typename T>
HWY_INLINE float ExpRow(float* x, float offset, T* rounded, int64_t count) {
  const Vector shift = hn::Set(kFloats, offset);
  Vector sum = hn::Zero(kFloats);
  int64_t j = 0;
  for (; j + Lanes() <= count; j += Lanes()) {
    const Vector e = ExpOfNegative(hn::Sub(Load(x + j), shift));
    sum = hn::Add(sum, e);
    if constexpr (kKeep) Store(e, x + j);
    if (rounded) Store(e, rounded + j);
  }
  float total = hn::GetLane(hn::SumOfLanes(kFloats, sum));
  if (j < count) {
    HWY_ALIGN float last[hn::MaxLanes(kFloats)];
    Store(ExpOfNegative(hn::Sub(LoadPart(x + j, count - j), shift)), last);
    for (int64_t l = 0; l < count - j; ++l) total += last[l];
    if constexpr (kKeep) std::memcpy(x + j, last, (count - j) * sizeof(float));
    if (rounded) StorePart(Load(last), rounded + j, count - j);
  }
  return total;
}

// How many keys of the tile query `first + i` may see before segments are looked at.
HWY_INLINE int64_t KeyLimit(const RowTerms& terms, const Tile& tile, int64_t i) {
  if (!terms.causal) return tile.keys;
  return std::clamp<int64_t>(tile.first + i + terms.start + 1, 0, tile.keys);
}

template <typename T>
HWY_INLINE const T* Row(const void* base, int64_t row, int64_t stride) {
  return static_cast<const T*>(base) + row * stride;
}
template <typename T>
HWY_INLINE T* Row(void* base, int64_t row, int64_t stride) {
  return static_cast<T*>(base) + row * stride;
}

HWY_INLINE const float* TableRow(const RowTerms& terms, int64_t query) {
  const int64_t m = terms.query_positions ? terms.query_positions[query] : query + terms.start;
  return terms.table + m * terms.table_stride;
}

// row[y * Na + x] += a[x] * b[y], below `count`.
template <typename T>
HWY_INLINE void AddOuter(const RowTerms& terms, int64_t query, float* row, float* scratch,
                         int64_t count) {
  float *a = scratch, *b = scratch + terms.a_size;
  Convert(Row<T>(terms.a, query, terms.a_stride), a, terms.a_size);
  Convert(Row<T>(terms.b, query, terms.b_stride), b, terms.b_size);
  for (int64_t n = 0, y = 0; n < count; n += terms.a_size, ++y) {
    AddScaled(row + n, a, b[y], std::min(terms.a_size, count - n));
  }
}

template <typename T>
HWY_INLINE void AddTerms(const RowTerms& terms, const Tile& tile, int64_t i, int64_t limit) {
  const int64_t query = tile.first + i;
  float* row = tile.scores + i * tile.stride;
  const bool by_position = terms.key_positions != nullptr;
  const bool any = terms.table || terms.a || tile.position_scores;
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
  if (terms.a) AddOuter<T>(terms, query, target, tile.row_scratch + terms.extent, count);
  if (target != row) AddIndexed(row, target, terms.key_positions, limit);
  if (terms.bias) Add(row, terms.bias - query, limit);
  if (terms.query_segments) {
    const int32_t segment = terms.query_segments[query];
    if (segment == 0) {
      std::fill_n(row, limit, kMinusInfinity);
    } else {
      Mask(row, terms.key_segments, segment, limit);
    }
  }
}

// Zeros the keys of a row that nothing was computed for.
template <typename T>
HWY_INLINE void ClearFrom(T* row, int64_t begin, int64_t end) {
  if (begin < end) std::memset(static_cast<void*>(row + begin), 0, (end - begin) * sizeof(T));
}

template <typename T>
HWY_INLINE void ScaleRow(T* row, float scale, int64_t count) {
  const Vector s = hn::Set(kFloats, scale);
  int64_t j = 0;
  for (; j + Lanes() <= count; j += Lanes()) Store(hn::Mul(s, Load(row + j)), row + j);
  if (j < count) StorePart(hn::Mul(s, LoadPart(row + j, count - j)), row + j, count - j);
}

template <typename T>
void SoftmaxOf(const RowTerms& terms, const Tile& tile, BFloat16* rounded, bool normalize,
               float* log_sum_exp, float* inverse_sum) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    float* row = tile.scores + i * tile.stride;
    BFloat16* copy = rounded ? rounded + i * tile.stride : nullptr;
    int64_t limit = KeyLimit(terms, tile, i);
    AddTerms<T>(terms, tile, i, limit);
    const float maximum = Maximum(row, limit);
    const bool none = maximum == kMinusInfinity;
    if (none) limit = 0;
    float sum = 0.0f, inverse = 0.0f;
    if (!none) {
      // Normalised probabilities are rounded once, after the division.
      sum = copy && !normalize ? ExpRow<false>(row, maximum, copy, limit)
                               : ExpRow<true>(row, maximum, static_cast<BFloat16*>(nullptr), limit);
      inverse = 1.0f / sum;
    }
    if (normalize) {
      ScaleRow(row, inverse, limit);
      if (copy) Convert(row, copy, limit);
    }
    if (copy) {
      ClearFrom(copy, limit, tile.keys);
    } else {
      ClearFrom(row, limit, tile.keys);
    }
    log_sum_exp[i] = none ? kMinusInfinity : maximum + std::log(sum);
    inverse_sum[i] = inverse;
  }
}

template <typename T>
void ProbabilitiesOf(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                     BFloat16* rounded) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    float* row = tile.scores + i * tile.stride;
    BFloat16* copy = rounded ? rounded + i * tile.stride : nullptr;
    int64_t limit = log_sum_exp[i] == kMinusInfinity ? 0 : KeyLimit(terms, tile, i);
    if (limit > 0) {
      AddTerms<T>(terms, tile, i, limit);
      const float sum = ExpRow<true>(row, log_sum_exp[i], copy, limit);
      // The rounding of a large log_sum_exp scales the whole row; dividing by what the row adds up
      // to takes it out. Below bf16's own rounding it does not matter.
      if (!copy) ScaleRow(row, 1.0f / sum, limit);
    }
    ClearFrom(row, limit, tile.keys);
    if (copy) ClearFrom(copy, limit, tile.keys);
  }
}

template <typename T>
void RowDotsOf(const T* dy, const T* y, int64_t stride, int64_t rows, int64_t width, float* means) {
  for (int64_t i = 0; i < rows; ++i) means[i] = Dot(dy + i * stride, y + i * stride, width);
}

void ScoreGradientOf(const Tile& tile, float* d_scores, const float* means, BFloat16* rounded) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* p = tile.scores + i * tile.stride;
    float* ds = d_scores + i * tile.stride;
    BFloat16* copy = rounded ? rounded + i * tile.stride : nullptr;
    const Vector mean = hn::Set(kFloats, means[i]);
    int64_t j = 0;
    for (; j + Lanes() <= tile.keys; j += Lanes()) {
      const Vector x = hn::Mul(Load(p + j), hn::Sub(Load(ds + j), mean));
      Store(x, ds + j);
      if (copy) Store(x, copy + j);
    }
    for (int64_t l = j; l < tile.keys; ++l) ds[l] = p[l] * (ds[l] - means[i]);
    if (copy && j < tile.keys) Convert(ds + j, copy + j, tile.keys - j);
  }
}

template <typename T>
HWY_INLINE void StoreRow(const float* in, float scale, T* out, int64_t width, bool accumulate) {
  const Vector s = hn::Set(kFloats, scale);
  int64_t j = 0;
  for (; j + Lanes() <= width; j += Lanes()) {
    const Vector x = hn::Mul(s, Load(in + j));
    Store(accumulate ? hn::Add(x, Load(out + j)) : x, out + j);
  }
  if (j < width) {
    const Vector x = hn::Mul(s, LoadPart(in + j, width - j));
    StorePart(accumulate ? hn::Add(x, LoadPart(out + j, width - j)) : x, out + j, width - j);
  }
}

// The gradients of a and b from `d`, the gradient of their products.
template <typename T>
HWY_INLINE void SpreadOuter(const RowTerms& terms, const RowGradients& gradients, int64_t query,
                            const float* d, float* scratch, int64_t count) {
  float *a = scratch, *b = a + terms.a_size, *da = b + terms.b_size, *db = da + terms.a_size;
  Convert(Row<T>(terms.a, query, terms.a_stride), a, terms.a_size);
  Convert(Row<T>(terms.b, query, terms.b_stride), b, terms.b_size);
  std::fill_n(da, terms.a_size + terms.b_size, 0.0f);
  for (int64_t n = 0, y = 0; n < count; n += terms.a_size, ++y) {
    const int64_t width = std::min(terms.a_size, count - n);
    AddScaled(da, d + n, b[y], width);
    db[y] = Dot(a, d + n, width);
  }
  if (gradients.a) {
    StoreRow(da, 1.0f, Row<T>(gradients.a, query, terms.a_stride), terms.a_size,
             gradients.accumulate_a);
  }
  if (gradients.b) {
    StoreRow(db, 1.0f, Row<T>(gradients.b, query, terms.b_stride), terms.b_size,
             gradients.accumulate_b);
  }
}

template <typename T>
void SpreadGradientOf(const RowTerms& terms, const Tile& tile, const float* d_scores,
                      const RowGradients& gradients) {
  const bool by_position = terms.key_positions != nullptr;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const int64_t query = tile.first + i;
    const float* ds = d_scores + i * tile.stride;
    if (gradients.bias) Add(gradients.bias - query, ds, tile.keys);
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
        Convert(by, Row<BFloat16>(gradients.rounded_position_scores, i, count), count);
      }
    }
    if (gradients.table) {
      Add(gradients.table + (TableRow(terms, query) - terms.table), d, count);
    }
    if (gradients.a || gradients.b) {
      SpreadOuter<T>(terms, gradients, query, d, tile.row_scratch + terms.extent, count);
    }
  }
}

template <typename T>
void StoreRowsOf(const float* in, int64_t in_stride, const float* scale, T* out, int64_t out_stride,
                 int64_t rows, int64_t width, bool accumulate) {
  for (int64_t i = 0; i < rows; ++i) {
    PrefetchRow(out + (i + kRowsAhead) * out_stride, width * sizeof(T));
    StoreRow(in + i * in_stride, scale ? scale[i] : 1.0f, out + i * out_stride, width, accumulate);
  }
}

template <typename T>
void DotRowsOf(const T* query, int64_t query_stride, const T* key, int64_t key_stride,
               int64_t width, const Tile& tile) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const T* q = query + i * query_stride;
    float* row = tile.scores + i * tile.stride;
    for (int64_t j = 0; j < tile.keys; ++j) row[j] = Dot(q, key + j * key_stride, width);
  }
}

template <typename T>
void AddFeatureRowsOf(const T* u, int64_t u_stride, const float* positions, int64_t position_stride,
                      int64_t features, float* scores, int64_t stride, int64_t rows,
                      int64_t count) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t f = 0; f < features; ++f) {
      float scale;
      StorePart(LoadPart(u + i * u_stride + f, 1), &scale, 1);
      AddScaled(scores + i * stride, positions + f * position_stride, scale, count);
    }
  }
}

template <typename T>
void WeightRowsOf(const Tile& tile, const T* value, int64_t value_stride, int64_t width,
                  float* out) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* p = tile.scores + i * tile.stride;
    std::fill_n(out + i * width, width, 0.0f);
    for (int64_t j = 0; j < tile.keys; ++j) {
      if (p[j] != 0.0f) AddScaled(out + i * width, value + j * value_stride, p[j], width);
    }
  }
}

}  // namespace

// Entry points: element types are resolved here, once per tile.
void EnterSoftmax(const RowTerms& terms, const Tile& tile, void* rounded, bool normalize,
                  float* log_sum_exp, float* inverse_sum) {
  auto* copy = static_cast<BFloat16*>(rounded);
  if (terms.dtype == DType::kBF16) {
    SoftmaxOf<BFloat16>(terms, tile, copy, normalize, log_sum_exp, inverse_sum);
  } else {
    SoftmaxOf<float>(terms, tile, copy, normalize, log_sum_exp, inverse_sum);
  }
}

void EnterProbabilities(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                        void* rounded) {
  auto* copy = static_cast<BFloat16*>(rounded);
  if (terms.dtype == DType::kBF16) {
    ProbabilitiesOf<BFloat16>(terms, tile, log_sum_exp, copy);
  } else {
    ProbabilitiesOf<float>(terms, tile, log_sum_exp, copy);
  }
}

void EnterRowDots(DType dtype, const void* dy, const void* y, int64_t stride, int64_t rows,
                  int64_t width, float* means) {
  if (dtype == DType::kBF16) {
    RowDotsOf(static_cast<const BFloat16*>(dy), static_cast<const BFloat16*>(y), stride, rows,
              width, means);
  } else {
    RowDotsOf(static_cast<const float*>(dy), static_cast<const float*>(y), stride, rows, width,
              means);
  }
}

void EnterScoreGradient(const Tile& tile, float* d_scores, const float* means, void* rounded) {
  ScoreGradientOf(tile, d_scores, means, static_cast<BFloat16*>(rounded));
}

void EnterSpreadGradient(const RowTerms& terms, const Tile& tile, const float* d_scores,
                         const RowGradients& gradients) {
  if (terms.dtype == DType::kBF16) {
    SpreadGradientOf<BFloat16>(terms, tile, d_scores, gradients);
  } else {
    SpreadGradientOf<float>(terms, tile, d_scores, gradients);
  }
}

void EnterStoreRows(DType dtype, const float* in, int64_t in_stride, const float* scale, void* out,
                    int64_t out_stride, int64_t rows, int64_t width, bool accumulate) {
  if (dtype == DType::kBF16) {
    StoreRowsOf(in, in_stride, scale, static_cast<BFloat16*>(out), out_stride, rows, width,
                accumulate);
  } else {
    StoreRowsOf(in, in_stride, scale, static_cast<float*>(out), out_stride, rows, width,
                accumulate);
  }
}

void EnterRoundToBFloat16(const float* in, void* out, int64_t count) {
  Convert(in, static_cast<BFloat16*>(out), count);
}

void EnterAddTo(float* to, const float* from, int64_t count) { Add(to, from, count); }

void EnterDotRows(DType dtype, const void* query, int64_t query_stride, const void* key,
                  int64_t key_stride, int64_t width, const Tile& tile) {
  if (dtype == DType::kBF16) {
    DotRowsOf(static_cast<const BFloat16*>(query), query_stride, static_cast<const BFloat16*>(key),
              key_stride, width, tile);
  } else {
    DotRowsOf(static_cast<const float*>(query), query_stride, static_cast<const float*>(key),
              key_stride, width, tile);
  }
}

void EnterAddFeatureRows(DType dtype, const void* u, int64_t u_stride, const float* positions,
                         int64_t position_stride, int64_t features, float* scores, int64_t stride,
                         int64_t rows, int64_t count) {
  if (dtype == DType::kBF16) {
    AddFeatureRowsOf(static_cast<const BFloat16*>(u), u_stride, positions, position_stride,
                     features, scores, stride, rows, count);
  } else {
    AddFeatureRowsOf(static_cast<const float*>(u), u_stride, positions, position_stride, features,
                     scores, stride, rows, count);
  }
}

void EnterWeightRows(DType dtype, const Tile& tile, const void* value, int64_t value_stride,
                     int64_t width, float* out) {
  if (dtype == DType::kBF16) {
    WeightRowsOf(tile, static_cast<const BFloat16*>(value), value_stride, width, out);
  } else {
    WeightRowsOf(tile, static_cast<const float*>(value), value_stride, width, out);
  }
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

void Softmax(const RowTerms& terms, const Tile& tile, void* rounded, bool normalize,
             float* log_sum_exp, float* inverse_sum) {
  HWY_DYNAMIC_DISPATCH(EnterSoftmax)(terms, tile, rounded, normalize, log_sum_exp, inverse_sum);
}
void Probabilities(const RowTerms& terms, const Tile& tile, const float* log_sum_exp,
                   void* rounded) {
  HWY_DYNAMIC_DISPATCH(EnterProbabilities)(terms, tile, log_sum_exp, rounded);
}
void RowDots(DType dtype, const void* dy, const void* y, int64_t stride, int64_t rows,
             int64_t width, float* means) {
  HWY_DYNAMIC_DISPATCH(EnterRowDots)(dtype, dy, y, stride, rows, width, means);
}
void ScoreGradient(const Tile& tile, float* d_scores, const float* means, void* rounded) {
  HWY_DYNAMIC_DISPATCH(EnterScoreGradient)(tile, d_scores, means, rounded);
}
void SpreadGradient(const RowTerms& terms, const Tile& tile, const float* d_scores,
                    const RowGradients& gradients) {
  HWY_DYNAMIC_DISPATCH(EnterSpreadGradient)(terms, tile, d_scores, gradients);
}
void StoreRows(DType dtype, const float* in, int64_t in_stride, const float* scale, void* out,
               int64_t out_stride, int64_t rows, int64_t width, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(EnterStoreRows)
  (dtype, in, in_stride, scale, out, out_stride, rows, width, accumulate);
}
void GatherRows(DType dtype, const void* in, int64_t in_stride, void* out, int64_t out_stride,
                int64_t rows, int64_t width) {
  const size_t element = SizeOf(dtype);
  for (int64_t i = 0; i < rows; ++i) {
    PrefetchRow(static_cast<const std::byte*>(in) + (i + kRowsAhead) * in_stride * element,
                width * element);
    std::memcpy(static_cast<std::byte*>(out) + i * out_stride * element,
                static_cast<const std::byte*>(in) + i * in_stride * element, width * element);
  }
}
void RoundToBFloat16(const float* in, void* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(EnterRoundToBFloat16)(in, out, count);
}
void AddTo(float* to, const float* from, int64_t count) {
  HWY_DYNAMIC_DISPATCH(EnterAddTo)(to, from, count);
}
void DotRows(DType dtype, const void* query, int64_t query_stride, const void* key,
             int64_t key_stride, int64_t width, const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(EnterDotRows)
  (dtype, query, query_stride, key, key_stride, width, tile);
}
void AddFeatureRows(DType dtype, const void* u, int64_t u_stride, const float* positions,
                    int64_t position_stride, int64_t features, float* scores, int64_t stride,
                    int64_t rows, int64_t count) {
  HWY_DYNAMIC_DISPATCH(EnterAddFeatureRows)
  (dtype, u, u_stride, positions, position_stride, features, scores, stride, rows, count);
}
void WeightRows(DType dtype, const Tile& tile, const void* value, int64_t value_stride,
                int64_t width, float* out) {
  HWY_DYNAMIC_DISPATCH(EnterWeightRows)(dtype, tile, value, value_stride, width, out);
}

}  // namespace syntra::attention
#endif  // HWY_ONCE
