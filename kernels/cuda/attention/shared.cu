// SPDX-License-Identifier: Apache-2.0
// The shared class of attention (shared.h): finds the examples that fit, computes the
// exponentials with their sums, and their products with activations. A block of a product computes
// 128 rows and 128 columns: the head's columns of one, two or four examples side by side. The
// blocks of a head, which share its exponentials, follow each other.
#include "base/divide.h"
#include "kernels/cuda/attention/shared_hopper.h"
#include "kernels/cuda/attention/shared_products.h"

namespace syntra::attention {
namespace {

// The segments of an example's rows, if they are `count` times the same and then zeros. Otherwise
// count is -1.
struct Segments {
  int32_t first = 0;
  int count;
};

// All lanes of a warp must call it. Null means that all rows have the same segment.
__device__ Segments SegmentsOf(const int32_t* segments, int64_t b, int64_t rows) {
  if (segments == nullptr) return {1, static_cast<int>(rows)};
  segments += b * rows;
  int count = 0, others = 0;
  for (int64_t i = LaneIndex(); i < rows; i += kWarp) count += segments[i] != 0 ? 1 : 0;
  count = WarpSum(count);
  const int32_t first = segments[0];
  for (int64_t i = LaneIndex(); i < rows; i += kWarp) {
    others += segments[i] != (i < count ? first : 0) ? 1 : 0;
  }
  return {first, WarpSum(others) == 0 ? count : -1};
}

// One warp per example.
template <typename T>
__global__ void LengthsKernel(Terms<T> terms, SharedScores<T> scores) {
  const int64_t b = BlockIndex() * WarpCount() + WarpIndex();
  if (b >= scores.batch) return;
  const Segments queries = SegmentsOf(terms.query_segments, b, terms.queries);
  const Segments keys = SegmentsOf(terms.key_segments, b, terms.keys);
  const bool empty = queries.count == 0 || keys.count == 0;
  const bool fits = queries.count >= 0 && keys.count >= 0 && (empty || queries.first == keys.first);
  if (LaneIndex() != 0) return;
  scores.query_lengths[b] = queries.count;
  scores.key_lengths[b] = !fits ? kLeft : empty ? 0 : keys.count;
}

// A block computes kRows rows of E, one per warp, and kChunk keys at a time.
constexpr int kRows = kThreads / kWarp, kChunk = kWarp * kEight;
// Blocks on a multiprocessor: then all of a call with 12 heads of 512 queries run at once.
constexpr int kBlocksAtOnce = 6;

struct ExponentialsStorage {
  float sums[kRows][kChunk];  // prefix sums of the row
};

// Eight scores of row i, of which keys before `end` are allowed, the others -infinity. All loads
// wait for memory together.
template <typename T>
__device__ __forceinline__ Eight ScoresAt(const Terms<T>& terms, int64_t h, int64_t i, int64_t key,
                                          int64_t end) {
  const auto count = static_cast<int>(end - key < kEight ? end - key : kEight);
  Eight scores;
#pragma unroll
  for (int k = 0; k < kEight; ++k) scores[k] = k < count ? 0.0f : -INFINITY;
  if (count <= 0) return scores;
  if (terms.table != nullptr) scores += LoadEight(terms.TableRow(0, h, i) + key, count);
  if (terms.bias != nullptr) {
    const float* bias = terms.bias + h * (terms.queries + terms.keys - 1) + terms.queries - 1;
#pragma unroll
    for (int k = 0; k < kEight; ++k) scores[k] += k < count ? bias[key - i + k] : 0.0f;
  }
  return scores;
}

// Eight elements of row i of E, rounded to T.
template <typename T>
__device__ __forceinline__ Eight ExponentialsAt(const Terms<T>& terms, int64_t h, int64_t i,
                                                int64_t key, int64_t end, float largest) {
  Eight result = ScoresAt(terms, h, i, key, end);
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    result[k] = ToFloat(FromFloat<T>(key + k < end ? expf(result[k] - largest) : 0.0f));
  }
  return result;
}

// Computes E, the largest score of its rows, and D of every example: the sum of a row's first keys.
// It sums E as rounded for the products, so that probabilities add up to one.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    ExponentialsKernel(Terms<T> terms, SharedScores<T> scores) {
  auto& shared = Shared<ExponentialsStorage>();
  const int64_t tiles = DivideUp(terms.queries, kRows);
  const int64_t first = BlockIndex() % tiles * kRows, h = BlockIndex() / tiles;
  const int64_t i = first + WarpIndex();
  int64_t end = terms.pattern.causal && i + 1 < terms.keys ? i + 1 : terms.keys;
  if (i >= terms.queries) end = 0;
  float largest = -INFINITY, before = 0.0f;
  for (int64_t key = LaneIndex() * kEight; key < end; key += kChunk) {
    const Eight scores = ScoresAt(terms, h, i, key, end);
#pragma unroll
    for (int k = 0; k < kEight; ++k) largest = fmaxf(largest, scores[k]);
  }
  largest = WarpMax(largest);
  if (LaneIndex() == 0 && i < terms.queries) scores.largest[h * terms.queries + i] = largest;
  for (int64_t chunk = 0; chunk < scores.stride; chunk += kChunk) {
    const int64_t key = chunk + LaneIndex() * kEight;
    const Eight e = ExponentialsAt(terms, h, i, key, end, largest);
    if (i < terms.queries && key < scores.stride) {
      StoreEight(e, scores.exponentials + (h * terms.queries + i) * scores.stride + key, kEight);
    }
    float sum = 0.0f;
    for (int k = 0; k < kEight; ++k) sum += e[k];
    const float to_lane = SumToLane(sum);
    float running = before + ValueBefore(to_lane, 1);
    for (int k = 0; k < kEight; ++k) {
      running += e[k];
      shared.sums[WarpIndex()][LaneIndex() * kEight + k] = running;
    }
    before += ShuffleFrom(to_lane, kWarp - 1);
    SyncThreads();
    for (int64_t item = ThreadIndex(); item < scores.batch * kRows; item += ThreadCount()) {
      const int64_t b = item / kRows, row = item % kRows, n = scores.key_lengths[b] - chunk;
      if (first + row >= terms.queries || n <= 0 || n > kChunk) continue;
      scores.inverse_sums[scores.RowOf(b, h, first + row)] = shared.sums[row][n - 1];
    }
    SyncThreads();
  }
}

// Threads of a block that looks at an example, and rows of a thread whose loads wait for memory
// together.
constexpr int kFitThreads = 1024, kRowsAtOnce = 8;

struct FitStorage {
  int of_warp[kFitThreads / kWarp];
};

// Checks whether the sums of an example are large enough. If so, computes their inverses and
// log_sum_exp. One block per example.
template <typename T>
__global__ void __launch_bounds__(kFitThreads)
    FitKernel(SharedScores<T> scores, LogSumExp log_sum_exp) {
  const auto b = static_cast<int>(BlockIndex()), per_head = static_cast<int>(scores.queries);
  const int rows = static_cast<int>(scores.heads) * per_head;
  const int32_t keys = scores.key_lengths[b], queries = scores.query_lengths[b];
  if (keys < 0) return;
  float* sums = scores.inverse_sums + int64_t{b} * rows;
  // Calls body(row, n, its sum) for the thread's rows from `first` on; rows without keys: -1.
  const auto for_rows = [&](int first, const auto& body) {
    float of_rows[kRowsAtOnce];
#pragma unroll
    for (int n = 0; n < kRowsAtOnce; ++n) {
      const int row = first + n * kFitThreads;
      const bool allows = row < rows && keys > 0 && row % per_head < queries;
      of_rows[n] = allows ? sums[row] : -1.0f;
    }
#pragma unroll
    for (int n = 0; n < kRowsAtOnce; ++n) {
      if (first + n * kFitThreads < rows) body(first + n * kFitThreads, n, of_rows[n]);
    }
  };
  constexpr int kStep = kRowsAtOnce * kFitThreads;
  int small = 0;
  for (int first = ThreadIndex(); first < rows; first += kStep) {
    for_rows(first, [&](int, int, float sum) { small += sum >= 0.0f && sum < kLeastSum ? 1 : 0; });
  }
  if (BlockSum(small, Shared<FitStorage>().of_warp) > 0) {
    if (ThreadIndex() == 0) scores.key_lengths[b] = kLeft;
    return;
  }
  for (int first = ThreadIndex(); first < rows; first += kStep) {
    float largest[kRowsAtOnce];
#pragma unroll
    for (int n = 0; n < kRowsAtOnce; ++n) {
      const int row = first + n * kFitThreads;
      largest[n] = row < rows && log_sum_exp.to != nullptr ? scores.largest[row] : 0.0f;
    }
    for_rows(first, [&](int row, int n, float sum) {
      sums[row] = sum > 0.0f ? 1.0f / sum : 0.0f;
      if (log_sum_exp.to == nullptr) return;
      StoreResult(sum > 0.0f ? largest[n] + logf(sum) : -INFINITY,
                  log_sum_exp.to + int64_t{b} * rows + row, log_sum_exp.accumulate);
    });
  }
}

// Lists the examples that do not fit. Runs as one block.
template <typename T>
__global__ void ListKernel(SharedScores<T> scores) {
  for (int64_t b = ThreadIndex(); b < scores.batch; b += ThreadCount()) {
    int32_t place = 0;
    for (int64_t other = 0; other < b; ++other) place += scores.Fits(other) ? 0 : 1;
    if (!scores.Fits(b)) scores.left[1 + place] = static_cast<int32_t>(b);
    if (b == scores.batch - 1) scores.left[0] = place + (scores.Fits(b) ? 0 : 1);
  }
}

// The product with E or, if kTransposed, its transpose.
template <typename T, int kHead, bool kTransposed>
class Mixing {
 public:
  static constexpr int kExamples = kSide / kHead;  // side by side
  using A = OperandTile<T, kTransposed>;
  using B = OperandTile<T, true>;
  using Tile = MixTile<T, kTransposed, kExamples>;

  __device__ Mixing(const SharedScores<T>& scores, const Mixed<T>& mixed)
      : scores_(scores), mixed_(mixed), tile_(TileOfBlock(scores)) {
    FindOperands();
  }

  __device__ int Pieces() const { return DivideUp(tile_.inner_end - tile_.inner_begin, kInner<T>); }

  __device__ void Copy(int piece, A& a, B& b) const {
    const int inner = tile_.inner_begin + piece * kInner<T>;
    const int64_t row_stride = scores_.heads * scores_.head_size;
    b.Copy(from_ + inner * row_stride, row_stride, inner_rows_ - inner);
    if constexpr (kTransposed) {
      a.Copy(exponentials_ + inner * scores_.stride, scores_.stride, exponential_rows_ - inner);
    } else {
      a.Copy(exponentials_ + inner, scores_.stride, exponential_rows_);
    }
  }

  __device__ void Add(int, const A& a, const B& b, WarpSums& sums) const { AddTiles(a, b, sums); }

  __device__ void Scale(WarpSums& sums) const {
    constexpr int kColumns = (kHead < kWarpSide ? kHead : kWarpSide) / 8;  // of one example
#pragma unroll
    for (int first = 0; first < kWarpColumns; first += kColumns) {
      const int64_t b = ExampleOf(WarpColumn() + 8 * first);
#pragma unroll
      for (int m = 0; m < kWarpRows; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = WarpRow() + 16 * m + FragmentRow(2 * half);
          const float factor = tile_.Factor(b, tile_.first_row + row);
#pragma unroll
          for (int n = first; n < first + kColumns; ++n) {
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) sums[m][n].sum[i] *= factor;
          }
        }
      }
    }
  }

  __device__ void Store(StagedSums& staged, const WarpSums& sums) const {
    const int64_t b = ExampleOf(StagedColumn());
    const int column = StagedColumn() % kHead;
    const int left = static_cast<int>(scores_.head_size) - column;
    const bool there = left > 0 && tile_.Fits(b);
    T* to = mixed_.to + tile_.ElementOf(there ? b : 0, tile_.first_row, tile_.Rows(), column);
    StoreSums(staged, sums, [&](int row, const Eight& values) {
      if (!there || tile_.first_row + row >= tile_.Rows()) return;
      StoreResult(values, to + row * scores_.heads * scores_.head_size,
                  left < kEight ? left : kEight, mixed_.accumulate);
    });
  }

 private:
  __device__ static Tile TileOfBlock(const SharedScores<T>& scores) {
    const int64_t rows = kTransposed ? scores.keys : scores.queries;
    const int64_t tiles = DivideUp(rows, kSide);
    const int64_t groups = DivideUp(scores.batch, kExamples);
    return {scores, BlockIndex() / tiles / groups, static_cast<int>(BlockIndex() % tiles * kSide),
            BlockIndex() / tiles % groups * kExamples};
  }
  __device__ int64_t ExampleOf(int column) const { return tile_.first_example + column / kHead; }

  // The thread's own columns of both operands.
  __device__ void FindOperands() {
    const int64_t b = ExampleOf(B::Column()), column = B::Column() % kHead;
    const bool there = column < scores_.head_size && tile_.Fits(b);
    inner_rows_ = there ? tile_.InnerRowsOf(b) : 0;
    from_ = mixed_.from +
            tile_.ElementOf(there ? b : 0, B::Row(), tile_.InnerRows(), there ? column : 0);
    exponentials_ = scores_.Exponentials(tile_.h, A::Row() + (kTransposed ? 0 : tile_.first_row));
    exponential_rows_ = static_cast<int>(scores_.queries);
    if constexpr (kTransposed) {
      const bool in_row = tile_.first_row + A::Column() < scores_.stride;
      if (!in_row) exponential_rows_ = 0;
      exponentials_ += in_row ? tile_.first_row + A::Column() : 0;
    } else {
      exponential_rows_ -= tile_.first_row;
      exponentials_ += A::Column();
    }
  }

  const SharedScores<T>& scores_;
  const Mixed<T>& mixed_;
  Tile tile_;
  const T *from_, *exponentials_;
  int inner_rows_, exponential_rows_;  // number of rows of those columns that are used
};

template <typename T, int kHead, bool kTransposed>
__global__ void __launch_bounds__(kProductThreads, 2)
    MixKernel(SharedScores<T> scores, Mixed<T> mixed) {
  auto& shared = Shared<PipelineStorage<T, kTransposed, true>>();
  const Mixing<T, kHead, kTransposed> mixing(scores, mixed);
  WarpSums sums = {};
  Multiply(shared.stages, mixing.Pieces(), mixing, sums);
  mixing.Scale(sums);
  mixing.Store(shared.sums[WarpIndex()], sums);
}

template <bool kTransposed, typename T>
void Mix(const KernelArguments& arguments, const SharedScores<T>& scores, const Mixed<T>& mixed) {
  if constexpr (sizeof(T) == sizeof(BFloat16)) {
    const int64_t parts = kTransposed ? scores.gradient_parts : scores.value_parts;
    if (parts > 0) return MixOnHopper<kTransposed>(arguments, scores, mixed, parts);
  }
  WithHeadSize(scores.head_size, [&](auto head) {
    constexpr int64_t kExamples = kSide / head();
    const int64_t rows = kTransposed ? scores.keys : scores.queries;
    const int64_t blocks = DivideUp(rows, kSide) * scores.heads * DivideUp(scores.batch, kExamples);
    Launch(arguments, {blocks, kProductThreads, sizeof(PipelineStorage<T, kTransposed, true>)},
           MixKernel<T, head(), kTransposed>, scores, mixed);
  });
}

}  // namespace

SharedAttention::SharedAttention(const Dimensions& z, DType dtype, bool segments,
                                 WorkspaceLayout& layout)
    : z_(z), segments_(segments) {
  stride_ = static_cast<int64_t>(
      AlignUp(z_.keys, dtype == DType::kBF16 ? kInner<BFloat16> : kInner<float>));
  if (dtype == DType::kBF16) {
    value_parts_ = MixPartsOnHopper<false>(z_);
    gradient_parts_ = MixPartsOnHopper<true>(z_);
  }
  exponentials_ = layout.Place(z_.heads * z_.queries * stride_ * SizeOf(dtype));
  largest_ = layout.Place(z_.heads * z_.queries * sizeof(float));
  inverse_sums_ = layout.Place(z_.batch * z_.heads * z_.queries * sizeof(float));
  key_lengths_ = layout.Place(z_.batch * sizeof(int32_t));
  query_lengths_ = layout.Place(z_.batch * sizeof(int32_t));
  left_ = layout.Place((1 + z_.batch) * sizeof(int32_t));
}

std::optional<SharedAttention> SharedAttention::For(const Dimensions& z,
                                                    std::span<const TensorType> inputs,
                                                    WorkspaceLayout& layout) {
  if (z.IsSparse()) return std::nullopt;
  const bool decodes = inputs.size() == kInputCount && inputs[kQueryStart].present();
  for (int i : {kQuery, kU, kA, kKeyPositions, kPrefixEnds}) {
    if (inputs[i].present()) return std::nullopt;
  }
  const DType dtype = inputs[kValue].dtype;
  if (decodes || z.head_size > kLargestHead || z.head_size * SizeOf(dtype) % kCopyBytes != 0) {
    return std::nullopt;
  }
  return SharedAttention(z, dtype, inputs[kKeySegments].present(), layout);
}

template <typename T>
SharedScores<T> SharedAttention::In(std::byte* workspace) const {
  const auto place = [&]<typename Element>(size_t offset, Element) {
    return reinterpret_cast<Element*>(workspace + offset);
  };
  return {.batch = z_.batch,
          .heads = z_.heads,
          .queries = z_.queries,
          .keys = z_.keys,
          .head_size = z_.head_size,
          .causal = z_.pattern.causal,
          .stride = stride_,
          .exponentials = place(exponentials_, T{}),
          .largest = place(largest_, float{}),
          .inverse_sums = place(inverse_sums_, float{}),
          .key_lengths = place(key_lengths_, int32_t{}),
          .query_lengths = place(query_lengths_, int32_t{}),
          .left = place(left_, int32_t{}),
          .value_parts = value_parts_,
          .gradient_parts = gradient_parts_};
}

template <typename T>
SharedScores<T> SharedAttention::Run(const KernelArguments& arguments, const Terms<T>& terms,
                                     const LogSumExp& log_sum_exp) const {
  const SharedScores<T> scores = In<T>(arguments.workspace);
  Launch(arguments, {DivideUp(z_.batch, kRows), kThreads}, LengthsKernel<T>, terms, scores);
  Launch(arguments, {DivideUp(z_.queries, kRows) * z_.heads, kThreads, sizeof(ExponentialsStorage)},
         ExponentialsKernel<T>, terms, scores);
  Launch(arguments, {z_.batch, kFitThreads, sizeof(FitStorage)}, FitKernel<T>, scores, log_sum_exp);
  if (may_leave()) Launch(arguments, {1, kThreads}, ListKernel<T>, scores);
  return scores;
}

template <typename T>
void MixValues(const KernelArguments& arguments, const SharedScores<T>& scores,
               const Mixed<T>& mixed) {
  Mix<false>(arguments, scores, mixed);
}

template <typename T>
void MixGradients(const KernelArguments& arguments, const SharedScores<T>& scores,
                  const Mixed<T>& mixed) {
  Mix<true>(arguments, scores, mixed);
}

#define SYNTRA_FOR_ACTIVATION(T)                                                            \
  template SharedScores<T> SharedAttention::In(std::byte*) const;                           \
  template SharedScores<T> SharedAttention::Run(const KernelArguments&, const Terms<T>&,    \
                                                const LogSumExp&) const;                    \
  template void MixValues(const KernelArguments&, const SharedScores<T>&, const Mixed<T>&); \
  template void MixGradients(const KernelArguments&, const SharedScores<T>&, const Mixed<T>&);
SYNTRA_FOR_ACTIVATION(float)
SYNTRA_FOR_ACTIVATION(BFloat16)
#undef SYNTRA_FOR_ACTIVATION

}  // namespace syntra::attention
