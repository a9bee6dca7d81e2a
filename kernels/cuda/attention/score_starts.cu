// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/score_starts.h"

namespace syntra::attention {
namespace {

template <bool kOfKeys>
struct StartWriter {
  Terms<BFloat16> terms;
  StartTiles<kOfKeys> tiles;
  BFloat16* starts;

  // Writes what a lane loads at once: its elements of two fragments. Rows beyond the last get
  // zeros.
  __device__ void operator()(int64_t first, int) const {
    const auto tile = static_cast<int>(first / kStartTile);
    const int piece = static_cast<int>(first % kStartTile) / kEight, lane = piece % kWarp;
    const int h = tile / tiles.passing / tiles.own;
    const int own = tile / tiles.passing % tiles.own * 16 + lane / 4;
    const int passing = tile % tiles.passing * kColumns + piece / kWarp * 16 + lane % 4 * 2;
    Eight values;
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const int row = own + k / 2 % 2 * 8, column = passing + k / 4 * 8 + k % 2;
      const int i = kOfKeys ? column : row, j = kOfKeys ? row : column;
      constexpr int kAnyExample = 0;
      const bool there = i < terms.queries && j < terms.keys;
      values[k] = there ? terms.BiasAndTable(kAnyExample, h, i, j) : 0.0f;
    }
    StoreWholeEight(values, starts + first);
  }
};

}  // namespace

template <bool kOfKeys>
void WriteStarts(const KernelArguments& arguments, const Terms<BFloat16>& terms, BFloat16* starts) {
  const StartTiles<kOfKeys> tiles(terms);
  Elementwise(arguments, terms.heads * tiles.OfHead() * kStartTile,
              StartWriter<kOfKeys>{terms, tiles, starts});
}

template void WriteStarts<false>(const KernelArguments&, const Terms<BFloat16>&, BFloat16*);
template void WriteStarts<true>(const KernelArguments&, const Terms<BFloat16>&, BFloat16*);

}  // namespace syntra::attention
