// SPDX-License-Identifier: Apache-2.0
// The instructions stand here without Highway, which has none for tiles. Tiles 0 to 3 are the
// quarters of C's block, 4 and 5 the upper and the lower half of A, 6 and 7 the left and the right
// half of B.
#include "kernels/cpu/amx.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "base/error.h"
#include "kernels/cpu/prefetch.h"

#define SYNTRA_AMX [[gnu::target("amx-tile,amx-bf16,avx512f,avx512bw,avx512bf16")]]

namespace syntra {
namespace {

constexpr int64_t kTileRows = 16, kTileBytes = 64, kTileColumns = 16;
constexpr int64_t kSumsRow = AmxTiles::kBlockColumns * static_cast<int64_t>(sizeof(float));

// The configuration that ldtilecfg loads.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// GCC ignores the target of a destructor.
SYNTRA_AMX void Release() { _tile_release(); }

// Elements of a row of a block of C.
struct RowHalves {
  __m512 left, right;
};

SYNTRA_AMX inline __m512 LoadHalfWords(const std::byte* from) {
  constexpr __mmask16 kAll = 0xFFFF;  // without masks GCC 12 warns of values that are not set
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, bits), 16));
}

SYNTRA_AMX inline RowHalves LoadRow(DType type, const std::byte* from) {
  if (type == DType::kBF16) return {LoadHalfWords(from), LoadHalfWords(from + kTileBytes / 2)};
  return {_mm512_loadu_ps(from), _mm512_loadu_ps(from + kTileBytes)};
}

// What an epilogue leaves of elements, given by their bits as in cpu/bit_mask.cc. `mask` is theirs.
SYNTRA_AMX inline __m512i Finish16(Epilogue epilogue, __m512i bits, uint32_t& mask) {
  constexpr int16_t kMinusInfinity = -128;
  const __mmask32 kept = epilogue == Epilogue::kMask
                             ? mask
                             : _mm512_cmpgt_epi16_mask(bits, _mm512_set1_epi16(kMinusInfinity));
  mask = _mm512_cmpgt_epi16_mask(bits, _mm512_setzero_si512());
  return _mm512_maskz_mov_epi16(kept, bits);
}

SYNTRA_AMX inline __m512i Finish32(Epilogue epilogue, __m512i bits, uint16_t& mask) {
  constexpr int32_t kMinusInfinity = -128 * 65536;
  const __mmask16 kept = epilogue == Epilogue::kMask
                             ? mask
                             : _mm512_cmpgt_epi32_mask(bits, _mm512_set1_epi32(kMinusInfinity));
  mask = _mm512_cmpgt_epi32_mask(bits, _mm512_setzero_si512());
  return _mm512_maskz_mov_epi32(kept, bits);
}

// Stores sums of a row.
SYNTRA_AMX inline void StoreRow(const TileResult& result, const float* sums, std::byte* c,
                                std::byte* mask) {
  RowHalves row{_mm512_load_ps(sums), _mm512_load_ps(sums + kTileColumns)};
  if (result.alpha != 1.0f) {
    const __m512 alpha = _mm512_set1_ps(result.alpha);
    row = {_mm512_mul_ps(alpha, row.left), _mm512_mul_ps(alpha, row.right)};
  }
  if (result.accumulate) {
    const RowHalves before = LoadRow(result.type, c);
    row = {_mm512_add_ps(row.left, before.left), _mm512_add_ps(row.right, before.right)};
  }
  const bool finish = result.epilogue != Epilogue::kNone;
  uint32_t word = 0;
  if (result.epilogue == Epilogue::kMask) std::memcpy(&word, mask, sizeof word);
  if (result.type == DType::kBF16) {
    const auto bits = (__m512i)_mm512_cvtne2ps_pbh(row.right, row.left);
    _mm512_storeu_si512(c, finish ? Finish16(result.epilogue, bits, word) : bits);
  } else {
    __m512i left = _mm512_castps_si512(row.left), right = _mm512_castps_si512(row.right);
    if (finish) {
      auto low = static_cast<uint16_t>(word), high = static_cast<uint16_t>(word >> kTileColumns);
      left = Finish32(result.epilogue, left, low);
      right = Finish32(result.epilogue, right, high);
      word = low | uint32_t{high} << kTileColumns;
    }
    _mm512_storeu_si512(c, left);
    _mm512_storeu_si512(c + kTileBytes, right);
  }
  if (result.epilogue == Epilogue::kReluMask && mask != nullptr) {
    std::memcpy(mask, &word, sizeof word);
  }
}

}  // namespace

SYNTRA_AMX void AmxTiles::StoreLastRows(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    StoreRow(result_, sums_[last_sums_] + row * kBlockColumns, last_.c + row * last_.next_row,
             last_.mask != nullptr ? last_.mask + row * last_.next_mask_row : nullptr);
  }
}

// In each step of the loop a few rows of the last block are stored, and those of this one and those
// ahead prefetched.
template <bool kLower>
SYNTRA_AMX void AmxTiles::MultiplyBlock(const Rows& a, const std::byte* b, int64_t words,
                                        const TileBlock& c, const TileAhead& ahead,
                                        const Target& to) const {
  constexpr int64_t kPanelTile = kTileRows * kPanelRowBytes;
  const auto row_bytes = static_cast<int64_t>(kBlockColumns * SizeOf(result_.type));
  const int64_t step_rows = DivideUp(rows_ * kTileRows, words);
  std::byte* const below = to.first + kTileRows * to.next_row;
  if (to.adds) {
    _tile_loadd(0, to.first, to.next_row);
    _tile_loadd(1, to.first + kTileBytes, to.next_row);
    if constexpr (kLower) {
      _tile_loadd(2, below, to.next_row);
      _tile_loadd(3, below + kTileBytes, to.next_row);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kLower) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  const std::byte *upper = a.first, *lower = a.first + a.next_rows, *soon = ahead.first;
  int64_t row = 0;
  for (int64_t word = 0; word < words; word += kTileRows) {
    _tile_loadd(4, upper, a.next_row);
    _tile_loadd(6, b, kPanelRowBytes);
    _tile_loadd(7, b + kTileBytes, kPanelRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kLower) {
      _tile_loadd(5, lower, a.next_row);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    upper += a.next_words;
    lower += a.next_words;
    b += kPanelTile;
    for (int64_t i = 0; i < ahead.rows; ++i) PrefetchRow(soon + i * ahead.next_row, kTileBytes);
    soon += kTileBytes;
    const int64_t end = std::min(row + step_rows, rows_);
    if (last_.c != nullptr) StoreLastRows(row, end);
    for (; row < end; ++row) PrefetchRow(c.c + row * c.next_row, row_bytes);
  }
  _tile_stored(0, to.first, to.next_row);
  _tile_stored(1, to.first + kTileBytes, to.next_row);
  if constexpr (kLower) {
    _tile_stored(2, below, to.next_row);
    _tile_stored(3, below + kTileBytes, to.next_row);
  }
}

SYNTRA_AMX void AmxTiles::Configure(int64_t rows) {
  SYNTRA_CHECK(rows > 0 && rows <= kBlockRows);
  StoreLast();
  TileConfiguration configuration;
  const auto define = [&](int tile, int64_t tile_rows) {
    configuration.row_bytes[tile] = tile_rows > 0 ? kTileBytes : 0;
    configuration.rows[tile] = static_cast<uint8_t>(tile_rows);
  };
  const int64_t upper = std::min(rows, kTileRows);
  for (const int tile : {0, 1, 4}) define(tile, upper);
  for (const int tile : {2, 3, 5}) define(tile, rows - upper);
  for (const int tile : {6, 7}) define(tile, kTileRows);
  // GCC's intrinsic says that it reads 8 bytes only.
  asm volatile("ldtilecfg %0" : : "m"(configuration));
  rows_ = rows;
}

SYNTRA_AMX void AmxTiles::StoreLast() {
  if (last_.c == nullptr) return;
  StoreLastRows(0, rows_);
  last_ = {};
}

AmxTiles::~AmxTiles() {
  StoreLast();
  Release();
}

void AmxTiles::Multiply(const Rows& a, const std::byte* b, int64_t words, const TileBlock& c,
                        const TileAhead& ahead) {
  // In a short product, storing the sums twice takes longer than waiting for C.
  constexpr int64_t kShortWords = 128;
  const bool as_it_is = result_.type == DType::kF32 && result_.alpha == 1.0f &&
                        result_.epilogue == Epilogue::kNone && words <= kShortWords;
  const int sums = 1 - last_sums_;
  const Target to = as_it_is ? Target{c.c, c.next_row, result_.accumulate}
                             : Target{reinterpret_cast<std::byte*>(sums_[sums]), kSumsRow, false};
  if (rows_ > kTileRows) {
    MultiplyBlock<true>(a, b, words, c, ahead, to);
  } else {
    MultiplyBlock<false>(a, b, words, c, ahead, to);
  }
  last_ = as_it_is ? TileBlock{} : c;
  last_sums_ = sums;
}

SYNTRA_AMX void AmxTiles::MultiplyInRegisters(int64_t rounds) const {
  SYNTRA_CHECK(rows_ == kBlockRows);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

}  // namespace syntra
