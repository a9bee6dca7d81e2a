// SPDX-License-Identifier: Apache-2.0
// The sum of bias and table, with which scores start. It is the same for all examples, if the table
// has the scores' rows and columns. On Hopper GPUs, in calls of one product, it is written once per
// call, in bf16, tile by tile in the order of a warp's registers. So a lane loads its part of a
// tile by four accesses of 16 bytes instead of one for each element or two, and half as many bytes
// pass through the second-level cache.
//
// All kernels of such a call must start with the same numbers, because the backward pass recomputes
// P from the forward pass's log_sum_exp. Those that do not load these tiles round as they do.
#pragma once

#include "kernels/cuda/attention/scores.h"

namespace syntra::attention {

// Whether a call has such tiles. `inputs` are those of attention or attention_grad.
inline bool HasStarts(std::span<const TensorType> inputs) {
  const bool both = inputs[kQuery].present() && inputs[kU].present();
  const bool by_row = !inputs[kQueryPositions].present() && !inputs[kKeyPositions].present();
  return inputs[kTable].present() && by_row && !both;
}
__host__ __device__ inline bool HasStarts(const Terms<BFloat16>& terms) {
  const bool both = terms.query != nullptr && terms.u != nullptr;
  return terms.table != nullptr && terms.ByRow() && !both;
}

// The tables that a kernel is compiled for: none, those in such tiles, or any.
enum class Table { kNone, kInStarts, kAny };

// Calls body with a call's Table, as a constant.
template <typename Body>
void WithTable(const Terms<BFloat16>& terms, const Body& body) {
  if (terms.table == nullptr) return body(std::integral_constant<Table, Table::kNone>());
  if (HasStarts(terms)) return body(std::integral_constant<Table, Table::kInStarts>());
  body(std::integral_constant<Table, Table::kAny>());
}

// In a kernel for products: tells the compiler which terms StartScores adds.
template <Table kTable>
__device__ void AssumeTable(Terms<BFloat16>& terms) {
  terms.AssumeProducts();
  if (kTable != Table::kAny) terms.table = nullptr;
  if (kTable == Table::kInStarts) terms.bias = nullptr;
}

// A tile: a warp's 16 own rows, which are queries or, with kOfKeys, keys, and 64 passing rows.
constexpr int kStartTile = 16 * kColumns;

// The numbers of a head's tiles on both sides. Blocks have 128 own rows, some perhaps beyond the
// last.
template <bool kOfKeys>
struct StartTiles {
  int own, passing;

  // `sizes` are Dimensions or Terms.
  template <typename Sizes>
  __host__ __device__ explicit StartTiles(const Sizes& sizes) {
    constexpr int kOwn = 2 * kColumns;
    const auto queries = static_cast<int>(sizes.queries), keys = static_cast<int>(sizes.keys);
    own = DivideUp(kOfKeys ? keys : queries, kOwn) * (kOwn / 16);
    passing = DivideUp(kOfKeys ? queries : keys, kColumns);
  }

  __host__ __device__ int64_t OfHead() const { return int64_t{own} * passing; }
};

// The elements of a call's tiles.
template <bool kOfKeys>
int64_t StartElements(const Dimensions& z) {
  return z.heads * StartTiles<kOfKeys>(z).OfHead() * kStartTile;
}

// Writes the tiles.
template <bool kOfKeys>
void WriteStarts(const KernelArguments& arguments, const Terms<BFloat16>& terms, BFloat16* starts);

// A lane's part of a warp's tile, in 16 registers: few enough to load it while products are
// computed.
template <bool kOfKeys>
class StartTile {
 public:
  __device__ __forceinline__ void Load(const BFloat16* starts, const Terms<BFloat16>& terms, int h,
                                       const Place& place) {
    const StartTiles<kOfKeys> tiles(terms);
    const int tile = (place.own / 16 + WarpIndex()) * tiles.passing + place.passing / kColumns;
    starts += (h * tiles.OfHead() + tile) * kStartTile + LaneIndex() * kEight;
#pragma unroll
    for (int n = 0; n < kLines; ++n) {
      lines_[n] = *reinterpret_cast<const Line<BFloat16>*>(starts + n * (kWarp * kEight));
    }
  }

  __device__ __forceinline__ void CopyTo(Fragment (&scores)[1][kFragments]) const {
    ForElements([&](float element, int n, int k) { scores[0][n].sum[k] = element; });
  }
  __device__ __forceinline__ void AddTo(Fragment (&scores)[1][kFragments]) const {
    ForElements([&](float element, int n, int k) { scores[0][n].sum[k] += element; });
  }

 private:
  static constexpr int kLines = kFragments / 2;

  template <typename Body>
  __device__ __forceinline__ void ForElements(const Body& body) const {
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) body(ToFloat(lines_[n / 2].element[n % 2 * 4 + k]), n, k);
    }
  }

  Line<BFloat16> lines_[kLines];
};

// Rounds what scores start with (StartScores) as it is in the tiles.
__device__ __forceinline__ void RoundStart(Fragment (&scores)[1][kFragments]) {
#pragma unroll
  for (Fragment& fragment : scores[0]) {
#pragma unroll
    for (float& sum : fragment.sum) sum = ToFloat(ToBFloat16(sum));
  }
}

}  // namespace syntra::attention
