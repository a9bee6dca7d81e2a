// SPDX-License-Identifier: Apache-2.0
// The instructions stand here without Highway, which has none for tiles. Tiles 0 to 3 are the
// quarters of C's block, 4 and 5 the upper and the lower half of A, 6 and 7 the left and the right
// half of B.
#include "kernels/cpu/amx.h"

#include <algorithm>

#include "base/error.h"

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#define SYNTRA_AMX [[gnu::target("amx-tile,amx-bf16")]]

namespace syntra {
namespace {

constexpr int64_t kTileRows = 16, kTileBytes = 64, kTileColumns = 16;

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

template <bool kLower>
SYNTRA_AMX void MultiplyBlock(const AmxTiles::Rows& a, const std::byte* b, int64_t words, float* c,
                              int64_t stride, bool accumulate) {
  constexpr int64_t kPanelTile = kTileRows * kPanelRowBytes;
  const int64_t c_row = stride * static_cast<int64_t>(sizeof(float));
  float* below = c + kTileRows * stride;
  if (accumulate) {
    _tile_loadd(0, c, c_row);
    _tile_loadd(1, c + kTileColumns, c_row);
    if constexpr (kLower) {
      _tile_loadd(2, below, c_row);
      _tile_loadd(3, below + kTileColumns, c_row);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kLower) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  const std::byte *upper = a.first, *lower = a.first + a.next_rows;
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
  }
  _tile_stored(0, c, c_row);
  _tile_stored(1, c + kTileColumns, c_row);
  if constexpr (kLower) {
    _tile_stored(2, below, c_row);
    _tile_stored(3, below + kTileColumns, c_row);
  }
}

}  // namespace

SYNTRA_AMX void AmxTiles::Configure(int64_t rows) {
  SYNTRA_CHECK(rows > 0 && rows <= kBlockRows);
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
  lower_ = rows > upper;
}

AmxTiles::~AmxTiles() { Release(); }

void AmxTiles::Multiply(const Rows& a, const std::byte* b, int64_t words, float* c, int64_t stride,
                        bool accumulate) const {
  (lower_ ? MultiplyBlock<true> : MultiplyBlock<false>)(a, b, words, c, stride, accumulate);
}

SYNTRA_AMX void AmxTiles::MultiplyInRegisters(int64_t rounds) const {
  SYNTRA_CHECK(lower_);
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

#else

namespace syntra {

void AmxTiles::Configure(int64_t) { Fail(ExitCode::kInternal, "this processor has no tiles"); }
AmxTiles::~AmxTiles() = default;
void AmxTiles::Multiply(const Rows&, const std::byte*, int64_t, float*, int64_t, bool) const {}
void AmxTiles::MultiplyInRegisters(int64_t) const {}

}  // namespace syntra

#endif
