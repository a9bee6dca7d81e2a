// SPDX-License-Identifier: Apache-2.0
// The passes of attention_grad over queries and over keys (grad.h). A block computes 64
// rows of one side in a part of the batch, and 64 columns of each result.
#include "kernels/cuda/attention/grad.h"

namespace syntra::attention {
namespace {

template <typename T>
constexpr size_t kSkewedBytes = kTileWarps * sizeof(SkewedRows<T>);

// The results that a pass computes besides dV.
template <bool kKeys, bool kWithDot, bool kWithDense, bool kWithFactors = false>
struct Pass {
  static constexpr bool kOfKeys = kKeys, kDot = kWithDot, kDense = kWithDense;
  static constexpr bool kFactors = kWithFactors;
};

// Multiplies dS by the factors whose tiles begin at `own` and `passing`.
template <typename T>
__device__ __forceinline__ void MultiplyByFactors(const Source<T>& source, const T* own,
                                                  const T* passing, const RowScores<T>& d_scores,
                                                  RowScores<T>& products) {
#pragma unroll
  for (int first = 0; first < kPassingFragments<T>; first += kFactorFragments) {
    Fragment factors[1][kFactorFragments];
    SetFactors(source, own, passing + 8 * first * kTileStride<T>, factors);
#pragma unroll
    for (int n = 0; n < kFactorFragments; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        products[0][first + n].sum[k] = d_scores[0][first + n].sum[k] * factors[0][n].sum[k];
      }
    }
  }
}

template <typename T, typename Pass>
class PassGradients {
 public:
  static constexpr bool kOfKeys = Pass::kOfKeys;

  __device__ PassGradients(const Recomputation<T>& work, std::byte* memory, int64_t h, int own,
                           int chunk)
      : work_(work), terms_(work.call.terms), h_(h), chunk_(chunk) {
    next_.own = own;
    skewed_ = reinterpret_cast<SkewedRows<T>*>(memory);
    own_ = reinterpret_cast<T*>(memory + (AddsToLine() ? kSkewedBytes<T> : 0));
  }

  __device__ void StartPart(int64_t part) {
    if (AddsToLine()) line_ = StartLine(work_, part, h_, next_.own / kOwnRows, WarpIndex());
  }

  __device__ void StartExample(int64_t b) {
    b_ = b;
    next_.passing = -kPassing<T>;
    const Side<T> queries = Queries(terms_, work_.call.dy, b, h_), keys = Keys(terms_, b, h_);
    side_ = kOfKeys ? queries : keys;
    (kOfKeys ? keys : queries).template Copy<kOwnRows>(next_.own, own_);
    stages_ = own_ + side_.TileCount() * kOwnTile<T, 1>;
    if constexpr (!kOfKeys) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        own_statistics_[half] = work_.StatisticsOf(b, h_)[OwnRow() + FragmentRow(2 * half)];
      }
    }
#pragma unroll
    for (int c = 0; c < kFragments; ++c) value_[0][c] = dot_[0][c] = of_a_[0][c] = of_b_[0][c] = {};
  }

  __device__ bool Find() { return FindNext<kOfKeys>(terms_, b_, h_, kOwnRows, next_); }

  __device__ void Copy(int stage) {
    T* to = Stage(stage);
    side_.template Copy<kPassing<T>>(next_.passing, to);
    if constexpr (kOfKeys) {
      constexpr int kAtOnce = kCopyBytes / sizeof(RowStatistics);
      const int row = ThreadIndex() * kAtOnce;
      if (row < kPassing<T>) {
        CopyAsync(StatisticsIn(to) + row, work_.StatisticsOf(b_, h_) + next_.passing + row, true);
      }
    }
  }

  __device__ void Prepare() {
    place_ = next_;
    StartScores<kOfKeys>(terms_, b_, h_, place_, scores_);
  }

  __device__ void Use(int stage) {
    T* passing = Stage(stage);
    const RowStatistics* rows = StatisticsIn(passing);
    FinishScores<kOfKeys>(
        terms_, b_, h_, place_, side_, own_, passing,
        [&](int n, int k) {
          return kOfKeys ? rows[8 * n + FragmentColumn(k)] : own_statistics_[k / 2];
        },
        scores_, d_scores_);
    if constexpr (kOfKeys) {
      AddMixed(scores_, TileOf(passing, side_.Scores(), side_.value), value_);
    }
    if constexpr (Pass::kDot) AddMixed(d_scores_, TileOf(passing, 0, side_.dot), dot_);
    if constexpr (Pass::kDense) {
      AddMixed(d_scores_, TileOf(passing, side_.dot.TileCount(), side_.dense), dense_);
    }
    if constexpr (Pass::kFactors) {
      const int a = side_.Features(), b = a + side_.a.TileCount();
      AddFactor(passing, side_.b, b, side_.a, a, of_a_);
      AddFactor(passing, side_.a, a, side_.b, b, of_b_);
    }
    if (AddsToLine()) {
      AddToLine<kOfKeys>(terms_, place_, d_scores_[0], skewed_[WarpIndex()], line_ + place_.passing,
                         far_);
    }
  }

  // Call it when no stage is in use any more.
  __device__ void StoreExample() {
    const Backward<T>& call = work_.call;
    const int64_t width = terms_.head_size;
    if constexpr (kOfKeys) {
      Store(value_, call.dvalue, kValue, {terms_.keys, width, call.dvalue_pitch});
      if constexpr (Pass::kDot) Store(dot_, call.dkey, kKey, {terms_.keys, width, call.dkey_pitch});
    } else {
      const auto dense = [&](int64_t columns) {
        return DenseRows(terms_, terms_.queries, columns);
      };
      if constexpr (Pass::kDot) {
        Store(dot_, call.dquery, kQuery, {terms_.queries, width, call.dquery_pitch});
      }
      if constexpr (Pass::kDense) {
        Store(dense_, call.du, kU, dense(terms_.features));
#pragma unroll
        for (Fragment& fragment : dense_[0]) fragment = {};
      }
      if constexpr (Pass::kFactors) {
        Store(of_a_, call.da, kA, dense(terms_.a_size));
        Store(of_b_, call.db, kB, dense(terms_.b_size));
      }
    }
  }

  __device__ void StorePart(int64_t part) {
    if (AddsToLine()) far_.AddTo(line_, work_, OwnRow());
    if constexpr (kOfKeys && Pass::kDense) {
      const auto width = static_cast<int>(Chunks(terms_.features) * kColumns);
      const Target<float> target{work_.DenseParts(part, h_), static_cast<int>(terms_.keys), width,
                                 width, false};
      if (chunk_ < Chunks(terms_.features)) {
        StoreTile(Staged(), dense_[0], target, OwnRow(), chunk_ * kColumns);
      }
    }
  }

 private:
  __device__ bool AddsToLine() const {
    return kOfKeys && work_.bias_lines != nullptr && chunk_ == 0;
  }
  __device__ int OwnRow() const { return next_.own + WarpIndex() * 16; }
  __device__ SumsBuffer& Staged() const {
    return reinterpret_cast<RowsOfSums*>(stages_)->of_warp[WarpIndex()];
  }
  __device__ T* Stage(int stage) const {
    constexpr int kStatistics = kOfKeys ? kPassing<T> * sizeof(RowStatistics) / sizeof(T) : 0;
    return stages_ + stage * (side_.TileCount() * kPassingTile<T> + kStatistics);
  }
  __device__ RowStatistics* StatisticsIn(T* stage) const {
    return reinterpret_cast<RowStatistics*>(stage + side_.TileCount() * kPassingTile<T>);
  }
  // The block's columns of a source whose tiles begin at `first`. If the source has fewer, other
  // columns.
  __device__ const T* TileOf(const T* passing, int first, const Source<T>& source) const {
    return passing + (first + (chunk_ < source.TileCount() ? chunk_ : 0)) * kPassingTile<T>;
  }

  // Adds the gradient of the factor whose units are `units`, given the other factor. Their tiles
  // begin at the numbers `first` and `other_first`.
  __device__ void AddFactor(const T* passing, const Source<T>& other, int other_first,
                            const Source<T>& units, int first, Fragment (&sums)[1][kFragments]) {
    MultiplyByFactors(other, own_ + other_first * kOwnTile<T, 1>,
                      passing + other_first * kPassingTile<T>, d_scores_, scores_);
    AddMixed(scores_, TileOf(passing, first, units), sums, units.width - chunk_ * kColumns);
  }

  __device__ void Store(const Fragment (&sums)[1][kFragments], T* to, Input input,
                        const PitchedRows& rows) {
    if (to == nullptr || chunk_ >= Chunks(rows.width)) return;
    StoreTile(Staged(), sums[0], TargetAt(to, rows, b_, h_, work_.call.accumulate[input]), OwnRow(),
              chunk_ * kColumns);
  }

  const Recomputation<T>& work_;
  const Terms<T>& terms_;
  int64_t h_, b_;
  int chunk_;
  SkewedRows<T>* skewed_;
  float* line_;
  FarSums far_;
  T *own_, *stages_;
  Side<T> side_;  // the passing side
  Place next_, place_;
  RowStatistics own_statistics_[2];
  RowScores<T> scores_, d_scores_;
  Fragment value_[1][kFragments], dot_[1][kFragments], dense_[1][kFragments] = {};
  Fragment of_a_[1][kFragments], of_b_[1][kFragments];
};

template <typename T, typename Pass, bool kPlain>
__global__ void __launch_bounds__(kTileThreads, 2)
    PassGradientsKernel(Recomputation<T> work, int parts, int chunks, int stages) {
  if constexpr (kPlain) work.call.terms.AssumePlain();
  const Terms<T>& terms = work.call.terms;
  const auto tiles = static_cast<int>(Chunks(Pass::kOfKeys ? terms.keys : terms.queries));
  const auto heads = static_cast<int>(terms.heads);
  const auto examples = static_cast<int>(terms.ExampleCount());
  ForItems(terms, int64_t{parts} * heads * tiles * chunks, [&](int item) {
    const int chunk = item % chunks, own = item / chunks % tiles * kOwnRows;
    const int h = item / chunks / tiles % heads, part = item / chunks / tiles / heads;
    PassGradients<T, Pass> gradients(work, SharedBytes(), h, own, chunk);
    gradients.StartPart(part);
    const int end = FirstOfPart(examples, part + 1, parts);
    for (int n = FirstOfPart(examples, part, parts); n < end; ++n) {
      gradients.StartExample(terms.Example(n));
      PassStages(stages, gradients);
      gradients.StoreExample();
      SyncThreads();
    }
    gradients.StorePart(part);
  });
}

template <typename T, typename Pass>
void RunPass(const KernelArguments& arguments, const Recomputation<T>& work, int64_t chunks,
             const TileMemory& memory) {
  const Terms<T>& z = work.call.terms;
  const int64_t parts = Pass::kOfKeys ? work.parts : z.batch;
  const int64_t items = parts * z.heads * Chunks(Pass::kOfKeys ? z.keys : z.queries) * chunks;
  const auto launch = [&](auto plain) {
    Launch(arguments, ItemGrid(z, items, memory.bytes), PassGradientsKernel<T, Pass, plain()>, work,
           static_cast<int>(parts), static_cast<int>(chunks), memory.stages);
  };
  if constexpr (Pass::kDot && !Pass::kDense) {
    WithPlain(z, launch);
  } else {
    launch(std::false_type());
  }
}

// Calls body with a Pass.
template <bool kOfKeys, typename Body>
void WithPass(bool dot, bool dense, const Body& body) {
  if (dot && dense) return body(Pass<kOfKeys, true, true>());
  if (dot) return body(Pass<kOfKeys, true, false>());
  if (dense) return body(Pass<kOfKeys, false, true>());
  if constexpr (kOfKeys) body(Pass<true, false, false>());
}

}  // namespace

template <typename T>
std::optional<TileMemory> TwoPassTileMemory(const GradientTiles<T>& tile_counts, bool bias) {
  return TileMemory::For(tile_counts.own_bytes() + (bias ? kSkewedBytes<T> : 0),
                         tile_counts.passing_bytes() + kPassing<T> * sizeof(RowStatistics));
}

template <typename T>
void RunTwoPasses(const KernelArguments& arguments, const Recomputation<T>& work) {
  const Backward<T>& call = work.call;
  const Terms<T>& z = call.terms;
  const GradientTiles<T> tile_counts(z, z.query != nullptr);
  const auto chunks = [&](bool of_head, bool of_features) {
    return std::max(of_head ? Chunks(z.head_size) : 0, of_features ? Chunks(z.features) : 0);
  };
  WithPass<false>(call.dquery != nullptr, call.du != nullptr, [&]<typename Pass>(Pass) {
    RunPass<T, Pass>(arguments, work, chunks(Pass::kDot, Pass::kDense),
                     *TwoPassTileMemory(tile_counts, false));
  });
  if (call.da != nullptr || call.db != nullptr) {
    RunPass<T, Pass<false, false, false, true>>(arguments, work,
                                                std::max(Chunks(z.a_size), Chunks(z.b_size)),
                                                *TwoPassTileMemory(tile_counts, false));
  }
  const bool keys = call.dvalue != nullptr || call.dkey != nullptr || call.dbias != nullptr;
  if (!keys && call.dpositions == nullptr) return;
  WithPass<true>(call.dkey != nullptr, call.dpositions != nullptr, [&]<typename Pass>(Pass) {
    RunPass<T, Pass>(arguments, work, chunks(keys, Pass::kDense),
                     *TwoPassTileMemory(tile_counts, call.dbias != nullptr));
  });
}

#define SYNTRA_FOR_ACTIVATION(T)                                                       \
  template std::optional<TileMemory> TwoPassTileMemory(const GradientTiles<T>&, bool); \
  template void RunTwoPasses(const KernelArguments&, const Recomputation<T>&);
SYNTRA_FOR_ACTIVATION(float)
SYNTRA_FOR_ACTIVATION(BFloat16)
#undef SYNTRA_FOR_ACTIVATION

}  // namespace syntra::attention
