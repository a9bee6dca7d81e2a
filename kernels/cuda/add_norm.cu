// SPDX-License-Identifier: Apache-2.0
// add_norm: sum = x + dropout(y); normed = sum * rsqrt(mean(sum^2) + epsilon) * scale, T5's RMSNorm
// (Zhang and Sennrich 2019). Its gradient, with g = d_normed * scale and r the inverse root mean
// square: dx = d_sum + r (g - sum r^2 mean(g sum)), dscale = sum over rows of d_normed sum r.
//
// A row is kept in registers, so that memory is read once and written once. A warp computes a row
// of whole pieces that is not too long, a block any other. All of a row's loads come before its
// first store: the compiler moves none across a store, and each waits for memory.
#include <cstring>

#include "kernels/cuda/noise.h"
#include "kernels/cuda/reduce.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

constexpr int kWarps = kThreads / kWarp;

// Shared memory of a team. The threads of a block team use the two sums alternately.
struct NormStorage {
  float sums[2][kWarps];
};

// Threads that compute a row together. A member has every n-th piece of eight columns, where n is
// the number of members.
struct WarpTeam {
  static constexpr bool kWholePieces = true;
  static constexpr int kSize = kWarp, kOfABlock = kWarps;

  __device__ static int Member() { return LaneIndex(); }
  __device__ static int Index() { return WarpIndex(); }
  __device__ float Sum(float value) { return WarpSum(value); }
};

struct BlockTeam {
  static constexpr bool kWholePieces = false;
  static constexpr int kSize = kThreads, kOfABlock = 1;
  int turn = 0;

  __device__ static int Member() { return ThreadIndex(); }
  __device__ static int Index() { return 0; }
  __device__ float Sum(float value) {
    return BlockSum(value, Shared<NormStorage>().sums[turn++ % 2]);
  }
};

template <typename Team>
struct Columns {
  int64_t width;

  __device__ int64_t At(int piece) const {
    return (int64_t{piece} * Team::kSize + Team::Member()) * kEight;
  }
  __device__ int CountAt(int piece) const {
    const int64_t left = width - At(piece);
    return static_cast<int>(left < 0 ? 0 : left < kEight ? left : kEight);
  }
};

template <typename Team, typename T>
__device__ __forceinline__ Eight LoadPiece(const T* from, int count) {
  if constexpr (!Team::kWholePieces) return LoadEight(from, count);
  return count == 0 ? Eight{} : LoadWholeEight(from);
}

// A member's share of a row as it is in memory, where bf16 takes half the registers of f32.
template <typename Team, typename T, int kPieces>
class RowShare {
 public:
  // Zeros if `row` is null.
  __device__ __forceinline__ RowShare(const T* row, const Columns<Team>& columns) {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int count = row != nullptr ? columns.CountAt(piece) : 0;
      pieces_[piece] = Load(row + columns.At(piece), count);
    }
  }
  __device__ __forceinline__ Eight operator[](int piece) const {
    T elements[kEight];
    memcpy(elements, &pieces_[piece], sizeof elements);
    Eight values;
#pragma unroll
    for (int k = 0; k < kEight; ++k) values[k] = ToFloat(elements[k]);
    return values;
  }

 private:
  // As words: single elements of bf16 would take a register each.
  struct [[gnu::may_alias]] alignas(16) Piece {
    uint32_t word[kEight * sizeof(T) / sizeof(uint32_t)];
  };

  __device__ __forceinline__ static Piece Load(const T* from, int count) {
    Piece piece = {};
    if constexpr (Team::kWholePieces) {
      if (count > 0) piece = *reinterpret_cast<const Piece*>(from);
    } else {
      const Eight values = LoadEight(from, count);
      T elements[kEight];
#pragma unroll
      for (int k = 0; k < kEight; ++k) elements[k] = FromFloat<T>(values[k]);
      memcpy(&piece, elements, sizeof elements);
    }
    return piece;
  }

  Piece pieces_[kPieces];
};

template <typename Team, typename T>
__device__ __forceinline__ void StorePiece(const Eight& values, T* to, int count) {
  if constexpr (!Team::kWholePieces) {
    StoreEight(values, to, count);
  } else if (count > 0) {
    StoreWholeEight(values, to);
  }
}

template <typename Team, typename T>
__device__ __forceinline__ void AddTo(Eight values, T* to, int64_t i, int count, bool accumulate) {
  if (to == nullptr) return;
  if (accumulate) values += LoadPiece<Team>(to + i, count);
  StorePiece<Team>(values, to + i, count);
}

template <typename T>
struct AddNorm {
  const T *x, *y;  // x may be null
  const float* scale;
  T *sum, *normed;     // null: not needed
  float* inverse_rms;  // null: not needed
  int64_t rows, width;
  float epsilon;
  KeyedMask mask;
};

template <typename T, typename Team, int kPieces>
__global__ void __launch_bounds__(kThreads) AddNormKernel(AddNorm<T> call) {
  using Share = RowShare<Team, T, kPieces>;
  Team team;
  const Columns<Team> columns{call.width};
  const int64_t stride = BlockCount() * Team::kOfABlock;
  for (int64_t row = BlockIndex() * Team::kOfABlock + team.Index(); row < call.rows;
       row += stride) {
    const int64_t first = row * call.width;
    const Share y(call.y + first, columns);
    const Share x(call.x != nullptr ? call.x + first : nullptr, columns);
    Eight sum[kPieces];
    float squares = 0.0f;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int count = columns.CountAt(piece);
      const int64_t column = columns.At(piece), i = first + column;
      sum[piece] = y[piece];
      call.mask.template Apply<Team::kWholePieces>(sum[piece], row, column);
      sum[piece] += x[piece];
      if (call.sum != nullptr) StorePiece<Team>(sum[piece], call.sum + i, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        squares += sum[piece][k] * sum[piece][k];
        sum[piece][k] = ToFloat(FromFloat<T>(sum[piece][k]));  // as it is stored
      }
    }
    const float mean = team.Sum(squares) / static_cast<float>(call.width);
    const float inverse = 1.0f / sqrtf(mean + call.epsilon);
    if (call.inverse_rms != nullptr && team.Member() == 0) call.inverse_rms[row] = inverse;
    if (call.normed == nullptr) continue;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int count = columns.CountAt(piece);
      const int64_t column = columns.At(piece);
      const Eight scale = LoadPiece<Team>(call.scale + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) sum[piece][k] *= inverse * scale[k];
      StorePiece<Team>(sum[piece], call.normed + first + column, count);
    }
  }
}

template <typename T>
struct AddNormGrad {
  const T* sum;
  const float *scale, *inverse_rms;
  const T *d_sum, *d_normed;  // one may be null
  T *dx, *dy;                 // null: not needed
  float* dscale;              // of each block; null: not needed
  int64_t rows, width;
  bool accumulate_x, accumulate_y;
  KeyedMask mask;
};

// Adds the teams' shares of dscale one after the other, so that their order is fixed.
template <typename Team, int kPieces>
__device__ void StoreScaleGradient(const Eight* share, const Columns<Team>& columns, float* to) {
  auto* shared = reinterpret_cast<float*>(SharedBytes());
  for (int team = 0; team < Team::kOfABlock; ++team) {
    SyncThreads();
    if (Team::Index() != team) continue;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        float& sum = shared[columns.At(piece) + k];
        sum = team == 0 ? share[piece][k] : sum + share[piece][k];
      }
    }
  }
  SyncThreads();
  for (int64_t j = ThreadIndex(); j < columns.width; j += kThreads) to[j] = shared[j];
}

// The blocks of a multiprocessor: two where the registers suffice.
template <typename T, int kPieces>
constexpr int kGradientBlocks = kPieces * sizeof(T) <= 6 ? 2 : 1;

template <typename T, typename Team, int kPieces>
__global__ void __launch_bounds__(kThreads, kGradientBlocks<T, kPieces>)
    AddNormGradKernel(AddNormGrad<T> call) {
  Team team;
  const Columns<Team> columns{call.width};
  const int64_t first = call.rows * BlockIndex() / BlockCount();
  const int64_t last = call.rows * (BlockIndex() + 1) / BlockCount();
  Eight dscale[kPieces] = {};
  for (int64_t row = first + team.Index(); row < last; row += Team::kOfABlock) {
    const auto share = [&](const T* matrix) {
      return RowShare<Team, T, kPieces>(matrix != nullptr ? matrix + row * call.width : nullptr,
                                        columns);
    };
    const float r = call.inverse_rms[row];
    const auto sum = share(call.d_normed != nullptr ? call.sum : nullptr);
    const auto d_normed = share(call.d_normed), d_sum = share(call.d_sum);
    const auto scaled = [&](int piece) {
      Eight result = d_normed[piece];
      const Eight scale = LoadPiece<Team>(call.scale + columns.At(piece), columns.CountAt(piece));
#pragma unroll
      for (int k = 0; k < kEight; ++k) result[k] *= scale[k];
      return result;
    };
    float dot = 0.0f;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const Eight gradient = d_normed[piece], sums = sum[piece], of_sum = scaled(piece);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        dscale[piece][k] += gradient[k] * sums[k] * r;
        dot += of_sum[k] * sums[k];
      }
    }
    const float shrink = team.Sum(dot) / static_cast<float>(call.width) * r * r * r;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int count = columns.CountAt(piece);
      const int64_t column = columns.At(piece), i = row * call.width + column;
      Eight gradient = scaled(piece);
      const Eight sums = sum[piece], others = d_sum[piece];
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        gradient[k] = r * gradient[k] - shrink * sums[k] + others[k];
      }
      AddTo<Team>(gradient, call.dx, i, count, call.accumulate_x);
      if (call.dy == nullptr) continue;
      call.mask.template Apply<Team::kWholePieces>(gradient, row, column);
      AddTo<Team>(gradient, call.dy, i, count, call.accumulate_y);
    }
  }
  if (call.dscale != nullptr) {
    StoreScaleGradient<Team, kPieces>(dscale, columns, call.dscale + BlockIndex() * call.width);
  }
}

// The number of pieces for each member of a team.
template <typename Team, int kPieces>
struct Split {};

constexpr int64_t kMostWidth = 2 * BlockTeam::kSize * kEight;

// Calls body with the smallest Split that holds a row of `width`.
template <typename Body>
void WithSplit(int64_t width, const Body& body) {
  const auto fits = [&]<typename Team>(Team, int pieces) {
    return (!Team::kWholePieces || width % kEight == 0) && width <= pieces * Team::kSize * kEight;
  };
  if (fits(WarpTeam(), 1)) return body(Split<WarpTeam, 1>());
  if (fits(WarpTeam(), 2)) return body(Split<WarpTeam, 2>());
  if (fits(WarpTeam(), 3)) return body(Split<WarpTeam, 3>());
  if (fits(WarpTeam(), 4)) return body(Split<WarpTeam, 4>());
  if (fits(BlockTeam(), 1)) return body(Split<BlockTeam, 1>());
  return body(Split<BlockTeam, 2>());
}

bool IsServed(const TensorType& type) { return type.shape[-1] <= kMostWidth; }

}  // namespace

std::optional<BoundKernel> cuda_add_norm(const OpCall& call) {
  const TensorType y = call.inputs[1];
  if (!IsServed(y)) return std::nullopt;
  const TensorMask mask = TensorMask::Of(call.attributes, y.shape);
  const auto epsilon = static_cast<float>(call.attributes.Number("epsilon"));
  BoundKernel kernel;
  kernel.run = [=](const KernelArguments& arguments) {
    const int64_t rows = y.shape.rows(), width = y.shape[-1];
    WithActivation(y.dtype, [&](auto type) {
      using T = decltype(type);
      const AddNorm<T> call{Input<T>(arguments, 0),
                            Input<T>(arguments, 1),
                            Input<float>(arguments, 2),
                            Output<T>(arguments, 0),
                            Output<T>(arguments, 1),
                            Output<float>(arguments, 2),
                            rows,
                            width,
                            epsilon,
                            {mask, mask.masks() ? Input<int32_t>(arguments, 3) : nullptr}};
      WithSplit(width, [&]<typename Team, int kPieces>(Split<Team, kPieces>) {
        const Grid grid = GridFor(rows * Team::kSize);
        Launch(arguments, {grid.blocks, kThreads, sizeof(NormStorage)},
               AddNormKernel<T, Team, kPieces>, call);
      });
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_add_norm_grad(const OpCall& call) {
  const TensorType sum = call.inputs[0];
  if (!IsServed(sum)) return std::nullopt;
  const int64_t rows = sum.shape.rows(), width = sum.shape[-1], parts = PartsOf(rows);
  const TensorMask mask = TensorMask::Of(call.attributes, sum.shape);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = parts * width * sizeof(float);
  kernel.run = [=, accumulate_x = Accumulates(call, 0), accumulate_y = Accumulates(call, 1),
                accumulate_scale = Accumulates(call, 2)](const KernelArguments& arguments) {
    float* dscale = Output<float>(arguments, 2);
    auto* partial = reinterpret_cast<float*>(arguments.workspace);
    WithActivation(sum.dtype, [&](auto type) {
      using T = decltype(type);
      const AddNormGrad<T> call{Input<T>(arguments, 0),
                                Input<float>(arguments, 1),
                                Input<float>(arguments, 2),
                                Input<T>(arguments, 3),
                                Input<T>(arguments, 4),
                                Output<T>(arguments, 0),
                                Output<T>(arguments, 1),
                                dscale != nullptr ? partial : nullptr,
                                rows,
                                width,
                                accumulate_x,
                                accumulate_y,
                                {mask, mask.masks() ? Input<int32_t>(arguments, 5) : nullptr}};
      WithSplit(width, [&]<typename Team, int kPieces>(Split<Team, kPieces>) {
        constexpr size_t kSharedBytes = kPieces * Team::kSize * kEight * sizeof(float);
        Launch(arguments, {parts, kThreads, kSharedBytes}, AddNormGradKernel<T, Team, kPieces>,
               call);
      });
    });
    if (dscale != nullptr) SumParts(arguments, partial, parts, width, dscale, accumulate_scale);
  };
  return kernel;
}

}  // namespace syntra
