// SPDX-License-Identifier: Apache-2.0
// attention_grad of the shared class (shared.h). With g_b[i] = dY_b[i] / D_b[i] and
// delta_b[i] = g_b[i] . Y_b[i],
//
//   dV_b[j]   = m_b[j] sum_i E[i,j] g_b[i]
//   dS[h,i,j] = E[i,j] sum_b m_b[j] (g_b[i] . V_b[j] - delta_b[i])
//
// The sum over the batch is the inner dimension of one product. g is rounded to T before it is used
// in both terms of dS, so that they cancel exactly. If there are few tiles of scores, the batch is
// split into parts, which are added in order when dtable and dbias are computed.
#include "base/divide.h"
#include "kernels/cuda/attention/bias_grad.h"
#include "kernels/cuda/attention/shared_hopper.h"
#include "kernels/cuda/attention/shared_products.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows.h"

namespace syntra::attention {
namespace {

// The operands of both products.
template <typename T>
struct Scaled {
  const T *y, *dy;
  T* g;          // [B, T, H * K]
  float* delta;  // [B, H, T]
};

// Computes g and delta of the examples that fit. Each lane handles eight elements of a head's row.
template <typename T, int kHead>
__global__ void ScaleKernel(SharedScores<T> scores, Scaled<T> scaled) {
  constexpr int kLanes = kHead / kEight;
  const int64_t rows = scores.batch * scores.queries * scores.heads;
  const int64_t stride = BlockCount() * ThreadCount();
  for (int64_t first = BlockIndex() * ThreadCount(); first < rows * kLanes; first += stride) {
    const int64_t row = (first + ThreadIndex()) / kLanes;
    const int column = ThreadIndex() % kLanes * kEight;
    const int64_t h = row % scores.heads, i = row / scores.heads % scores.queries;
    const int64_t b = row / scores.heads / scores.queries;
    const bool there = row < rows && scores.Fits(b);
    float delta = 0.0f;
    if (there && column < scores.head_size) {
      const int64_t left = scores.head_size - column, at = row * scores.head_size + column;
      const int count = static_cast<int>(left < kEight ? left : kEight);
      const float inverse = scores.inverse_sums[scores.RowOf(b, h, i)];
      const Eight dy = LoadEight(scaled.dy + at, count), y = LoadEight(scaled.y + at, count);
      Eight g;
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        g[k] = inverse > 0.0f ? ToFloat(FromFloat<T>(dy[k] * inverse)) : 0.0f;
        delta += g[k] * y[k];
      }
      StoreEight(g, scaled.g + at, count);
    }
    for (int mask = kLanes / 2; mask > 0; mask /= 2) delta += ShuffleXor(delta, mask);
    if (there && column == 0) scaled.delta[scores.RowOf(b, h, i)] = delta;
  }
}

// The product for a tile of 128 x 128 scores; its inner dimension loops over a part of the batch.
template <typename T, int kHead>
class ScoreProduct {
 public:
  static constexpr int kPieces = kHead / kInner<T>;  // of an example
  using Tile = OperandTile<T, false>;

  __device__ ScoreProduct(const ScoreSums<T>& sums, const T* g, const T* value, const float* delta)
      : scores_(sums.scores), delta_(delta) {
    const int64_t key_tiles = DivideUp(scores_.keys, kSide);
    const int64_t query_tiles = DivideUp(scores_.queries, kSide);
    first_key_ = static_cast<int>(BlockIndex() % key_tiles * kSide);
    first_query_ = static_cast<int>(BlockIndex() / key_tiles % query_tiles * kSide);
    const int64_t rest = BlockIndex() / key_tiles / query_tiles;
    part_ = rest % sums.parts;
    h_ = rest / sums.parts;
    first_example_ = scores_.batch * part_ / sums.parts;
    examples_ = static_cast<int>(scores_.batch * (part_ + 1) / sums.parts - first_example_);
    const int64_t row_stride = scores_.heads * scores_.head_size;
    const int64_t column = h_ * scores_.head_size + Tile::Column();
    g_ = g + (first_query_ + Tile::Row()) * row_stride + column;
    value_ = value + (first_key_ + Tile::Row()) * row_stride + column;
  }

  // The number of pieces of the inner dimension: 0 if all keys come after all queries.
  __device__ int Pieces() const {
    return scores_.causal && first_key_ >= first_query_ + kSide ? 0 : examples_ * kPieces;
  }

  __device__ void Copy(int piece, Tile& a, Tile& b) const {
    const int64_t example = first_example_ + piece / kPieces;
    if (!Counts(example)) return;
    const int column = piece % kPieces * kInner<T>;
    const int64_t row_stride = scores_.heads * scores_.head_size;
    const bool there = column + Tile::Column() < scores_.head_size;
    a.Copy(g_ + example * scores_.queries * row_stride + column, row_stride,
           there ? scores_.query_lengths[example] - first_query_ : 0);
    b.Copy(value_ + example * scores_.keys * row_stride + column, row_stride,
           there ? scores_.key_lengths[example] - first_key_ : 0);
  }

  __device__ void Add(int piece, const Tile& a, const Tile& b, WarpSums& sums) const {
    const int64_t example = first_example_ + piece / kPieces;
    if (!Counts(example)) return;
    if (piece % kPieces != kPieces - 1) return AddTiles(a, b, sums);
    float delta[kWarpRows][2];  // loaded before the product, which hides the latency
#pragma unroll
    for (int m = 0; m < kWarpRows; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t i = first_query_ + WarpRow() + 16 * m + FragmentRow(2 * half);
        delta[m][half] = i < scores_.queries ? delta_[scores_.RowOf(example, h_, i)] : 0.0f;
      }
    }
    AddTiles(a, b, sums);
    const int keys = scores_.key_lengths[example] - first_key_ - WarpColumn();
#pragma unroll
    for (int n = 0; n < kWarpColumns; ++n) {
#pragma unroll
      for (int m = 0; m < kWarpRows; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (8 * n + FragmentColumn(i) < keys) sums[m][n].sum[i] -= delta[m][i / 2];
        }
      }
    }
  }

  __device__ void Store(const ScoreSums<T>& to, StagedSums& staged, const WarpSums& sums) const {
    const int64_t key = first_key_ + StagedColumn();
    StoreSums(staged, sums, [&](int row, const Eight& values) {
      if (first_query_ + row < scores_.queries && key < scores_.stride) {
        StoreEight(values, to.At(part_, h_, first_query_ + row) + key, kEight);
      }
    });
  }

 private:
  __device__ bool Counts(int64_t example) const {
    return scores_.key_lengths[example] > first_key_ &&
           scores_.query_lengths[example] > first_query_;
  }

  const SharedScores<T>& scores_;
  const T *g_, *value_;  // the thread's own part of the first example's tiles
  const float* delta_;
  int first_key_, first_query_, examples_;
  int64_t part_, h_, first_example_;
};

template <typename T, int kHead>
__global__ void __launch_bounds__(kProductThreads, 2)
    ScoreSumsKernel(ScoreSums<T> to, const T* g, const T* value, const float* delta) {
  auto& shared = Shared<PipelineStorage<T, false, false>>();
  const ScoreProduct<T, kHead> product(to, g, value, delta);
  WarpSums sums = {};
  Multiply(shared.stages, product.Pieces(), product, sums);
  product.Store(to, shared.sums[WarpIndex()], sums);
}

// dtable if the table has a row per query: sums over the heads that share the table.
template <typename T>
struct TableGradient {
  ScoreSums<T> sums;
  float* dtable;
  int64_t heads, queries, keys;  // of the table
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const SharedScores<T>& scores = sums.scores;
    const int64_t i = row % queries, left = scores.keys - column;
    const int64_t first = row / queries, end = heads == 1 ? scores.heads : first + 1;
    Eight result = {};
    for (int64_t h = first; h < end && i < scores.queries && left > 0; ++h) {
      result += sums.Gradients(h, i, column, static_cast<int>(left < count ? left : count));
    }
    StoreResult(result, dtable + row * keys + column, count, accumulate);
  }
};

// Sums of dS along lines through the queries: along diagonals for dbias, and along columns for
// dtable if all queries share a row.
template <typename T>
struct LineGradient {
  ScoreSums<T> sums;
  float* result;         // [heads, lines]
  int64_t heads, lines;  // heads = 1: sums over all heads
  bool diagonal, accumulate;

  // The line's key for query i. It may be out of range.
  __device__ int64_t Key(int64_t line, int64_t i) const {
    return diagonal ? line + i - (sums.scores.queries - 1) : line;
  }
};

// The lanes of a warp have neighbouring lines, each of the block's warps sums every n-th query,
// where n is the number of warps.
template <typename T>
__global__ void __launch_bounds__(kColumnThreads) LineGradientKernel(LineGradient<T> call) {
  const SharedScores<T>& scores = call.sums.scores;
  const int64_t tiles = DivideUp(call.lines, kWarp), head = BlockIndex() / tiles;
  const int64_t line = BlockIndex() % tiles * kWarp + LaneIndex();
  const int64_t end = call.heads == 1 ? scores.heads : head + 1;
  float sum = 0.0f;
  for (int64_t h = head; h < end; ++h) {
#pragma unroll 4  // loads that wait for memory together
    for (int64_t i = WarpIndex(); i < scores.queries; i += WarpCount()) {
      const int64_t key = call.Key(line, i);
      if (key >= 0 && key < scores.keys) sum += call.sums.Gradient(h, i, key);
    }
  }
  const float total = SumOverWarps(sum, Shared<ColumnStorage>());
  if (WarpIndex() != 0 || line >= call.lines) return;
  StoreResult(total, call.result + head * call.lines + line, call.accumulate);
}

template <typename T>
void SumLines(const KernelArguments& arguments, const LineGradient<T>& call) {
  const int64_t blocks = call.heads * DivideUp(call.lines, kWarp);
  Launch(arguments, {blocks, kColumnThreads, sizeof(ColumnStorage)}, LineGradientKernel<T>, call);
}

int64_t ScoreTiles(const Dimensions& z) {
  return z.heads * DivideUp(z.queries, kSide) * DivideUp(z.keys, kSide);
}

}  // namespace

SharedGradients::SharedGradients(const OpCall& call, const Dimensions& z,
                                 const SharedAttention& shared, WorkspaceLayout& layout)
    : z_(z), parts_(call.inputs[kValue].dtype == DType::kBF16 ? SumPartsOnHopper(z) : 0) {
  on_hopper_ = parts_ > 0;
  // Two blocks at a time on each multiprocessor. Storing and adding up a block's sums takes about
  // the time of eight examples.
  if (!on_hopper_) parts_ = PartsFor(z.batch, ScoreTiles(z), 2 * Multiprocessors(), 8);
  scaled_ = layout.Place(call.inputs[kGivenDY].bytes());
  means_ = layout.Place(z_.batch * z_.heads * z_.queries * sizeof(float));
  const bool of_scores = call.outputs[kTable].present() || call.outputs[kBias].present();
  const int64_t elements = parts_ * z_.heads * z_.queries * shared.stride();
  sums_ = of_scores ? layout.Place(elements * sizeof(float)) : 0;
  bias_sums_ = PlaceBiasSums(call, z, layout);
}

template <typename T>
void SharedGradients::Run(const KernelArguments& arguments, const SharedScores<T>& scores,
                          const Backward<T>& call) const {
  const Terms<T>& terms = call.terms;
  const Scaled<T> scaled{call.y, call.dy, reinterpret_cast<T*>(arguments.workspace + scaled_),
                         reinterpret_cast<float*>(arguments.workspace + means_)};
  const ScoreSums<T> sums{scores, parts_, reinterpret_cast<float*>(arguments.workspace + sums_)};
  const bool of_scores = call.dtable != nullptr || call.dbias != nullptr;
  WithHeadSize(z_.head_size, [&](auto head) {
    const int64_t items = z_.batch * z_.queries * z_.heads * (head() / kEight);
    Launch(arguments, GridFor(items), ScaleKernel<T, head()>, scores, scaled);
    if (of_scores && !on_hopper_) {
      Launch(arguments,
             {ScoreTiles(z_) * parts_, kProductThreads, sizeof(PipelineStorage<T, false, false>)},
             ScoreSumsKernel<T, head()>, sums, scaled.g, terms.value, scaled.delta);
    }
  });
  if constexpr (sizeof(T) == sizeof(BFloat16)) {
    if (of_scores && on_hopper_) {
      SumOnHopper(arguments, z_, sums, scaled.g, terms.value, scaled.delta);
    }
  }
  if (call.dvalue != nullptr) {
    MixGradients(arguments, scores, {scaled.g, call.dvalue, call.accumulate[kValue]});
  }
  if (call.dtable != nullptr && terms.table_queries > 1) {
    Rowwise(arguments, terms.table_heads * terms.table_queries, terms.table_keys,
            TableGradient<T>{sums, call.dtable, terms.table_heads, terms.table_queries,
                             terms.table_keys, call.accumulate[kTable]});
  } else if (call.dtable != nullptr) {
    SumLines(arguments, LineGradient<T>{sums, call.dtable, terms.table_heads, terms.table_keys,
                                        false, call.accumulate[kTable]});
  }
  if (call.dbias != nullptr) {
    auto* all = reinterpret_cast<float*>(arguments.workspace + bias_sums_);
    SumBias(arguments, call, all, [&](float* to, bool accumulate) {
      SumLines(arguments,
               LineGradient<T>{sums, to, z_.heads, z_.queries + z_.keys - 1, true, accumulate});
    });
  }
}

template void SharedGradients::Run(const KernelArguments&, const SharedScores<float>&,
                                   const Backward<float>&) const;
template void SharedGradients::Run(const KernelArguments&, const SharedScores<BFloat16>&,
                                   const Backward<BFloat16>&) const;

}  // namespace syntra::attention
