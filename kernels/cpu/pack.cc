// SPDX-License-Identifier: Apache-2.0
// Transposition and packing by whole cache lines. Each line is read once and written once, because
// rows that are a power of two apart share few cache sets and evict each other.
#include "kernels/cpu/pack.h"

#include <cstring>

#include "base/divide.h"
#include "core/buffer.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pack.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

constexpr int64_t kLineBytes = 64, kRegisterBytes = 16;

#if HWY_TARGET == HWY_SCALAR

template <typename T>
void TransposeSquare(const T* from, int64_t stride, T* to, int64_t to_stride) {
  constexpr int64_t kSquare = kRegisterBytes / sizeof(T);
  for (int64_t row = 0; row < kSquare; ++row) {
    for (int64_t column = 0; column < kSquare; ++column) {
      to[column * to_stride + row] = from[row * stride + column];
    }
  }
}

#else

template <typename T>
using Register = hn::Vec<hn::Full128<T> >;

// Interleaves the lower and the upper lanes of two registers.
template <typename Lane, typename V>
HWY_INLINE void Interleave(V a, V b, V& lower, V& upper) {
  const hn::Full128<Lane> d;
  const hn::DFromV<V> as;
  lower = hn::BitCast(as, hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b)));
  upper = hn::BitCast(as, hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}

// Transposes a square with as many rows as a register has lanes. Strides are in elements.
HWY_INLINE void TransposeSquare(const uint32_t* from, int64_t stride, uint32_t* to,
                                int64_t to_stride) {
  const hn::Full128<uint32_t> d;
  Register<uint32_t> row[4], pair[4], column[4];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) row[i] = hn::LoadU(d, from + i * stride);
  Interleave<uint32_t>(row[0], row[1], pair[0], pair[1]);
  Interleave<uint32_t>(row[2], row[3], pair[2], pair[3]);
  Interleave<uint64_t>(pair[0], pair[2], column[0], column[1]);
  Interleave<uint64_t>(pair[1], pair[3], column[2], column[3]);
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) hn::StoreU(column[i], d, to + i * to_stride);
}

HWY_INLINE void TransposeSquare(const uint16_t* from, int64_t stride, uint16_t* to,
                                int64_t to_stride) {
  const hn::Full128<uint16_t> d;
  Register<uint16_t> row[8], pair[8], four[8], column[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) row[i] = hn::LoadU(d, from + i * stride);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) Interleave<uint16_t>(row[i], row[i + 1], pair[i], pair[i + 1]);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    Interleave<uint32_t>(pair[i], pair[i + 2], four[i], four[i + 1]);
    Interleave<uint32_t>(pair[i + 1], pair[i + 3], four[i + 2], four[i + 3]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    Interleave<uint64_t>(four[i], four[i + 4], column[2 * i], column[2 * i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) hn::StoreU(column[i], d, to + i * to_stride);
}

#endif

// Transposes a square of cache lines.
template <typename T>
HWY_INLINE void TransposeLines(const T* from, int64_t stride, T* to, int64_t to_stride) {
  constexpr int64_t kLine = kLineBytes / sizeof(T), kSquare = kRegisterBytes / sizeof(T);
  for (int64_t row = 0; row < kLine; row += kSquare) {
    for (int64_t column = 0; column < kLine; column += kSquare) {
      TransposeSquare(from + row * stride + column, stride, to + column * to_stride + row,
                      to_stride);
    }
  }
}

// Transposes a column of squares of cache lines. `rows` is a multiple of a line's elements. Squares
// go through a buffer, so that each line of `to` is written at once. The buffer is read one square
// later, when the narrow stores to it have completed.
template <typename T>
void TransposeColumn(const T* from, int64_t rows, int64_t stride, T* to, int64_t to_stride) {
  constexpr int64_t kLine = kLineBytes / sizeof(T), kAhead = 2 * kLine;
  HWY_ALIGN T buffer[2][kLine * kLine];
  const auto write = [&](int64_t row) {
    const T* square = buffer[row / kLine % 2];
    for (int64_t i = 0; i < kLine; ++i) {
      std::memcpy(to + i * to_stride + row, square + i * kLine, kLineBytes);
    }
  };
  for (int64_t row = 0; row < rows; row += kLine) {
    // After the last row come the first rows of the next column.
    for (int64_t i = row + kAhead; i < row + kAhead + kLine; ++i) {
      PrefetchRow(i < rows ? from + i * stride : from + kLine + (i - rows) * stride, kLineBytes);
    }
    TransposeLines(from + row * stride, stride, buffer[row / kLine % 2], kLine);
    if (row > 0) write(row - kLine);
  }
  if (rows > 0) write(rows - kLine);
}

template <typename T>
void TransposeMatrix(const Transposition& shape, const T* from, T* to) {
  constexpr int64_t kLine = kLineBytes / sizeof(T);
  const int64_t whole_rows = shape.rows / kLine * kLine;
  const auto one_by_one = [&](int64_t first_row, int64_t column) {
    for (int64_t row = first_row; row < shape.rows; ++row) {
      to[column * shape.rows + row] = from[row * shape.stride + column];
    }
  };
  ParallelFor(shape.columns, kLine, [&](int64_t begin, int64_t end) {
    int64_t column = begin;
    for (; column + kLine <= end; column += kLine) {
      TransposeColumn(from + column, whole_rows, shape.stride, to + column * shape.rows,
                      shape.rows);
      for (int64_t i = column; i < column + kLine; ++i) one_by_one(whole_rows, i);
    }
    for (; column < end; ++column) one_by_one(0, column);
  });
}

void TransposeAs(const Transposition& shape, const void* from, void* to) {
  if (shape.dtype == DType::kBF16) {
    TransposeMatrix(shape, static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to));
  } else {
    TransposeMatrix(shape, static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to));
  }
}

template <typename Lanes>
HWY_INLINE HalfWords LoadHalfWords(const float* from, Lanes lanes) {
  return ToBFloat16(Load(from, lanes));
}

// Words of a row of B, or of pairs made of it and the next row. The first row is in the low halves.
template <typename T, typename Lanes>
HWY_INLINE FloatVector LoadWords(const T* row, int64_t stride, bool pairs, Lanes lanes) {
  if constexpr (std::is_same_v<T, float>) {
    if (!pairs) return Load(row, lanes);
  }
  const hn::RebindToUnsigned<FloatTag> d32;
  const auto low = hn::PromoteTo(d32, LoadHalfWords(row, lanes));
  const auto high = hn::PromoteTo(d32, LoadHalfWords(row + stride, lanes));
  return hn::BitCast(FloatTag(), hn::Or(low, hn::ShiftLeft<16>(high)));
}

// Packs `count` rows of words of B stored as [k, n], given the address of their first element, one
// after the other.
template <typename T>
void PackRows(const T* from, int64_t stride, bool pairs, int64_t count, uint32_t* to) {
  for (int64_t row = 0; row < count; ++row, from += (pairs ? 2 : 1) * stride) {
    VectorLoop(kPanelColumns, [&](int64_t i, auto lanes) {
      Store(LoadWords(from + i, stride, pairs, lanes), reinterpret_cast<float*>(to + i), lanes);
    });
    to += kPanelColumns;
  }
}

// A panel of 64 columns, and the rows of words of it that are packed now.
struct PanelRows {
  uint32_t* panel;
  int64_t panel_rows, first, count;

  uint32_t* block() const { return panel + first * kPanelColumns; }
};

// Copies kWidth columns of rows of words. The width is known, so that a row takes one or two plain
// moves: a load and a store under a mask took some 25 cycles on a Zen 5.
template <int64_t kWidth>
void CopyStrip(const uint32_t* from, int64_t stride, int64_t count, uint32_t* to) {
  for (int64_t row = 0; row < count; ++row, from += stride, to += kWidth) {
    std::memcpy(to, from, kWidth * kWordBytes);
  }
}

// Packs a block of B stored as [k, n] as strips.
template <typename T>
void PackStrips(const T* from, int64_t stride, bool pairs, const PanelRows& to) {
  HWY_ALIGN uint32_t rows[kBlockWords * kPanelColumns];
  const void* words = from;
  if (pairs) {
    PackRows(from, stride, pairs, to.count, rows);
    words = rows;
    stride = kPanelColumns;
  }
  const auto* first = static_cast<const uint32_t*>(words);
  const auto strip = [&](int64_t column, int64_t width) {
    return to.panel + column * to.panel_rows + to.first * width;
  };
  constexpr int64_t kRest = kPanelColumns % kStripColumns, kWhole = kPanelColumns - kRest;
  for (int64_t column = 0; column < kWhole; column += kStripColumns) {
    CopyStrip<kStripColumns>(first + column, stride, to.count, strip(column, kStripColumns));
  }
  CopyStrip<kRest>(first + kWhole, stride, to.count, strip(kWhole, kRest));
}

// Packs a block of B stored as [k, n] as squares. Rows of words that B lacks are zero.
template <typename T>
void PackSquares(const T* from, int64_t stride, bool pairs, int64_t count, uint32_t* to) {
  HWY_ALIGN uint32_t rows[kBlockWords * kPanelColumns];
  PackRows(from, stride, pairs, count, rows);
  std::fill(rows + count * kPanelColumns, std::end(rows), 0);
  for (int64_t column = 0; column < kPanelColumns; column += kBlockWords) {
    TransposeLines(rows + column, kPanelColumns, to + column * kBlockWords, kBlockWords);
  }
}

// Packs a block of B stored as [n, k], given the address of its first element: transposes words.
template <typename T>
void PackColumns(const T* from, int64_t stride, bool pairs, uint32_t* to) {
  constexpr int64_t kLine = kLineBytes / sizeof(uint32_t);
  HWY_ALIGN BFloat16 rounded[2 * kLine * kLine];
  for (int64_t column = 0; column < kPanelColumns; column += kLine) {
    const T* lines = from + column * stride;
    const void* words = lines;
    int64_t words_stride = stride * static_cast<int64_t>(sizeof(T) / sizeof(BFloat16)) / 2;
    if (pairs && std::is_same_v<T, float>) {
      for (int64_t line = 0; line < kLine; ++line) {
        VectorLoop(2 * kLine, [&](int64_t i, auto lanes) {
          Store(Load(lines + line * stride + i, lanes), rounded + line * 2 * kLine + i, lanes);
        });
      }
      words = rounded;
      words_stride = kLine;
    }
    TransposeLines(static_cast<const uint32_t*>(words), words_stride, to + column, kPanelColumns);
  }
}

// The blocks of B in the order in which B is stored.
template <typename T>
class Blocks {
 public:
  Blocks(const PanelPacking& shape, const T* b)
      : shape_(shape),
        b_(b),
        pairs_(shape.packed == DType::kBF16),
        rows_(kBlockWords * RowsPerWord(shape.packed)),
        row_blocks_(DivideUp(shape.k, rows_)),
        panel_words_(PackedWords(shape)),
        stride_(shape.stored_stride()),
        inner_(shape.transposed ? row_blocks_ : shape.n / kPanelColumns) {}

  int64_t count() const { return row_blocks_ * (shape_.n / kPanelColumns); }

  // Always inlined for the same reason as PrefetchRow.
  HWY_INLINE void Prefetch(int64_t i) const {
    const T* from = Source(i);
    const int64_t rows = shape_.transposed ? kPanelColumns : RowsOf(i);
    const int64_t columns = shape_.transposed ? rows_ : kPanelColumns;
    for (int64_t row = 0; row < rows; ++row) PrefetchRow(from + row * stride_, columns * sizeof(T));
  }

  void Pack(int64_t i, uint32_t* to) const {
    const T* from = Source(i);
    const PanelRows rows{to + Column(i) * panel_words_ * kPanelColumns, panel_words_,
                         Row(i) * kBlockWords, RowsOf(i) / RowsPerWord(shape_.packed)};
    if (shape_.transposed) {
      PackColumns(from, stride_, pairs_, rows.block());
    } else if (shape_.layout == PanelLayout::kSquares) {
      PackSquares(from, stride_, pairs_, rows.count, rows.block());
    } else if (shape_.layout == PanelLayout::kStrips) {
      PackStrips(from, stride_, pairs_, rows);
    } else {
      PackRows(from, stride_, pairs_, rows.count, rows.block());
      if (shape_.fill) {
        std::fill(rows.block() + rows.count * kPanelColumns,
                  rows.block() + kBlockWords * kPanelColumns, 0);
      }
    }
  }

 private:
  int64_t Row(int64_t i) const { return shape_.transposed ? i % inner_ : i / inner_; }
  int64_t Column(int64_t i) const { return shape_.transposed ? i / inner_ : i % inner_; }
  int64_t RowsOf(int64_t i) const { return std::min(rows_, shape_.k - Row(i) * rows_); }
  const T* Source(int64_t i) const {
    const int64_t row = Row(i) * rows_, column = Column(i) * kPanelColumns;
    return b_ + (shape_.transposed ? column * stride_ + row : row * stride_ + column);
  }

  PanelPacking shape_;
  const T* b_;
  bool pairs_;
  int64_t rows_, row_blocks_;
  int64_t panel_words_;  // rows of words from one block of columns to the next
  int64_t stride_, inner_;
};

template <typename T>
void PackMatrix(const PanelPacking& shape, const T* b, uint32_t* to) {
  constexpr int64_t kAhead = 2;
  const Blocks<T> blocks(shape, b);
  ParallelFor(blocks.count(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < std::min(begin + kAhead, end); ++i) blocks.Prefetch(i);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) blocks.Prefetch(i + kAhead);
      blocks.Pack(i, to);
    }
  });
}

void PackAs(const PanelPacking& shape, const void* b, std::byte* to) {
  WithActivation(shape.stored, [&](auto type) {
    PackMatrix(shape, static_cast<const decltype(type)*>(b), reinterpret_cast<uint32_t*>(to));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(TransposeAs);
HWY_EXPORT(PackAs);

void Transpose(const Transposition& shape, const void* from, void* to) {
  HWY_DYNAMIC_DISPATCH(TransposeAs)(shape, from, to);
}

bool CanPack(const PanelPacking& shape) {
  const bool pairs = shape.packed == DType::kBF16;
  // Pairs of bf16 are moved as words.
  if (pairs && shape.transposed && shape.stored_stride() % 2 != 0) return false;
  if (shape.transposed && shape.layout != PanelLayout::kRows) return false;
  const int64_t rows = (shape.transposed ? kBlockWords : 1) * RowsPerWord(shape.packed);
  return (pairs || shape.stored == DType::kF32) && shape.n % kPanelColumns == 0 &&
         shape.k % rows == 0;
}

int64_t PackedWords(const PanelPacking& shape) {
  const int64_t words = (shape.whole_k > 0 ? shape.whole_k : shape.k) / RowsPerWord(shape.packed);
  const bool whole_blocks = shape.fill || shape.layout == PanelLayout::kSquares;
  return whole_blocks ? static_cast<int64_t>(AlignUp(words, kBlockWords)) : words;
}

size_t PackedBytes(const PanelPacking& shape) {
  return PackedWords(shape) * kPanelRowBytes * (shape.n / kPanelColumns);
}

void Pack(const PanelPacking& shape, const void* b, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(PackAs)(shape, b, to);
}

}  // namespace syntra
#endif
