// add_norm: sum = x + dropout(y); normed = sum * rsqrt(mean(sum^2) + epsilon) * scale, T5's RMSNorm
// (Zhang and Sennrich 2019). Its gradient, with g = d_normed * scale and r the inverse root mean
// square: dx = d_sum + r (g - sum r^2 mean(g sum)), dscale = sum over rows of d_normed sum r.
//
// A warp takes a row and keeps it in registers, so that memory is read once and written once.
#include "kernels/cuda/noise.h"
#include "kernels/cuda/reduce.h"
#include "kernels/operands.h"

namespace syntra {
namespace {

using namespace gpu;

constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kPieceColumns = kWarp * kEight;  // of a warp at once
constexpr int kMostPieces = 16;

struct RowMask {
  const int32_t* keys;  // null: no dropout
  Keep keep;
  uint64_t site;
  bool per_element;
  int64_t positions;

  __device__ void Apply(Eight& values, int64_t row, int64_t column, int64_t width) const {
    if (keys == nullptr) return;
    const int64_t start = per_element ? row % positions * width : 0;
    Mask(values, NoiseAt(RowKey(keys + row / positions * 2), site, start + column), keep);
  }
};

// The columns of a warp's lane: pieces of eight, 256 columns apart.
struct LaneColumns {
  int64_t width;

  __device__ int64_t At(int piece) const { return piece * kPieceColumns + LaneIndex() * kEight; }
  __device__ int CountAt(int piece) const {
    const int64_t left = width - At(piece);
    return static_cast<int>(left < 0 ? 0 : left < kEight ? left : kEight);
  }
};

template <typename T>
struct AddNorm {
  const T *x, *y;  // x may be null
  const float* scale;
  T *sum, *normed;     // null: not wanted
  float* inverse_rms;  // null: not wanted
  int64_t rows, width;
  float epsilon;
  RowMask mask;
};

template <typename T, int kPieces>
__global__ void __launch_bounds__(kThreads) AddNormKernel(AddNorm<T> call) {
  const LaneColumns columns{call.width};
  const int64_t step = BlockCount() * kWarps;
  for (int64_t row = BlockIndex() * kWarps + WarpIndex(); row < call.rows; row += step) {
    Eight sum[kPieces];
    float squares = 0.0f;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int count = columns.CountAt(piece);
      const int64_t column = columns.At(piece), i = row * call.width + column;
      sum[piece] = LoadEight(call.y + i, count);
      call.mask.Apply(sum[piece], row, column, call.width);
      if (call.x != nullptr) {
        const Eight x = LoadEight(call.x + i, count);
#pragma unroll
        for (int k = 0; k < kEight; ++k) sum[piece][k] += x[k];
      }
      if (call.sum != nullptr) StoreEight(sum[piece], call.sum + i, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        if (k >= count) sum[piece][k] = 0.0f;
        squares += sum[piece][k] * sum[piece][k];
      }
    }
    const float mean = WarpSum(squares) / static_cast<float>(call.width);
    const float inverse = 1.0f / sqrtf(mean + call.epsilon);
    if (call.inverse_rms != nullptr && LaneIndex() == 0) call.inverse_rms[row] = inverse;
    if (call.normed == nullptr) continue;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int count = columns.CountAt(piece);
      const int64_t column = columns.At(piece);
      const Eight scale = LoadEight(call.scale + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) sum[piece][k] *= inverse * scale[k];
      StoreEight(sum[piece], call.normed + row * call.width + column, count);
    }
  }
}

template <typename T>
struct AddNormGrad {
  const T* sum;
  const float *scale, *inverse_rms;
  const T *d_sum, *d_normed;  // one may be null
  T *dx, *dy;                 // null: not wanted
  float* dscale;              // of each block; null: not wanted
  int64_t rows, width;
  bool accumulate_x, accumulate_y;
  RowMask mask;
};

struct ScaleStorage {
  float dscale[kMostPieces * kPieceColumns];
};

// Adds the warps' shares of dscale one after the other, which fixes their order.
template <int kPieces>
__device__ void StoreScaleGradient(const Eight* share, const LaneColumns& columns, float* to) {
  auto& shared = Shared<ScaleStorage>();
  for (int warp = 0; warp < kWarps; ++warp) {
    if (WarpIndex() == warp) {
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          float& sum = shared.dscale[columns.At(piece) + k];
          sum = warp == 0 ? share[piece][k] : sum + share[piece][k];
        }
      }
    }
    SyncThreads();
  }
  for (int64_t j = ThreadIndex(); j < columns.width; j += kThreads) to[j] = shared.dscale[j];
}

template <typename T, int kPieces>
__global__ void __launch_bounds__(kThreads) AddNormGradKernel(AddNormGrad<T> call) {
  const LaneColumns columns{call.width};
  const int64_t first = call.rows * BlockIndex() / BlockCount();
  const int64_t last = call.rows * (BlockIndex() + 1) / BlockCount();
  Eight dscale[kPieces] = {};
  for (int64_t row = first + WarpIndex(); row < last; row += kWarps) {
    const float r = call.inverse_rms[row];
    Eight sum[kPieces], gradient[kPieces] = {};
    float dot = 0.0f;
#pragma unroll
    for (int piece = 0; piece < kPieces && call.d_normed != nullptr; ++piece) {
      const int count = columns.CountAt(piece);
      const int64_t column = columns.At(piece), i = row * call.width + column;
      sum[piece] = LoadEight(call.sum + i, count);
      gradient[piece] = LoadEight(call.d_normed + i, count);
      const Eight scale = LoadEight(call.scale + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        dscale[piece][k] += gradient[piece][k] * sum[piece][k] * r;
        gradient[piece][k] *= scale[k];
        dot += gradient[piece][k] * sum[piece][k];
      }
    }
    const float shrink = WarpSum(dot) / static_cast<float>(call.width) * r * r * r;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int count = columns.CountAt(piece);
      const int64_t column = columns.At(piece), i = row * call.width + column;
      if (call.d_normed != nullptr) {
#pragma unroll
        for (int k = 0; k < kEight; ++k) {
          gradient[piece][k] = r * gradient[piece][k] - shrink * sum[piece][k];
        }
      }
      if (call.d_sum != nullptr) {
        const Eight d_sum = LoadEight(call.d_sum + i, count);
#pragma unroll
        for (int k = 0; k < kEight; ++k) gradient[piece][k] += d_sum[k];
      }
      if (call.dx != nullptr) StoreResult(gradient[piece], call.dx + i, count, call.accumulate_x);
      if (call.dy == nullptr) continue;
      call.mask.Apply(gradient[piece], row, column, call.width);
      StoreResult(gradient[piece], call.dy + i, count, call.accumulate_y);
    }
  }
  if (call.dscale != nullptr) {
    StoreScaleGradient<kPieces>(dscale, columns, call.dscale + BlockIndex() * call.width);
  }
}

// Calls body with the least number of pieces, as a constant, that holds a row of `width`.
template <typename Body>
void WithPieces(int64_t width, const Body& body) {
  const int64_t pieces = (width + kPieceColumns - 1) / kPieceColumns;
  if (pieces <= 1) return body(std::integral_constant<int, 1>());
  if (pieces <= 2) return body(std::integral_constant<int, 2>());
  if (pieces <= 3) return body(std::integral_constant<int, 3>());
  if (pieces <= 4) return body(std::integral_constant<int, 4>());
  if (pieces <= 8) return body(std::integral_constant<int, 8>());
  return body(std::integral_constant<int, kMostPieces>());
}

RowMask MaskOf(const OpCall& call, const TensorType& keys, int64_t positions) {
  const double rate = call.attributes.Number("rate");
  RowMask mask = {};
  mask.positions = positions;
  if (!keys.present() || rate == 0.0) return mask;
  mask.keep = Keep::AtRate(rate);
  mask.site = static_cast<uint64_t>(call.attributes.Int("site"));
  mask.per_element = call.attributes.Flag("per_element");
  return mask;
}

bool IsServed(const TensorType& type) {
  return IsActivation(type) && type.shape[-1] <= kMostPieces * kPieceColumns;
}

}  // namespace

std::optional<BoundKernel> cuda_add_norm(const OpCall& call) {
  const TensorType y = call.inputs[1];
  if (!IsServed(y)) return std::nullopt;
  const RowMask mask = MaskOf(call, call.inputs[3], y.shape[1]);
  const bool masked = mask.keep.threshold > 0;
  const auto epsilon = static_cast<float>(call.attributes.Number("epsilon"));
  BoundKernel kernel;
  kernel.run = [=](const KernelArguments& arguments) {
    const int64_t rows = y.shape.rows(), width = y.shape[-1];
    WithActivation(y.dtype, [&](auto type) {
      using T = decltype(type);
      AddNorm<T> call{Input<T>(arguments, 0),
                      Input<T>(arguments, 1),
                      Input<float>(arguments, 2),
                      Output<T>(arguments, 0),
                      Output<T>(arguments, 1),
                      Output<float>(arguments, 2),
                      rows,
                      width,
                      epsilon,
                      mask};
      if (masked) call.mask.keys = Input<int32_t>(arguments, 3);
      WithPieces(width, [&](auto pieces) {
        Launch(arguments, GridFor(rows * kWarp), AddNormKernel<T, pieces()>, call);
      });
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_add_norm_grad(const OpCall& call) {
  const TensorType sum = call.inputs[0];
  if (!IsServed(sum)) return std::nullopt;
  const int64_t rows = sum.shape.rows(), width = sum.shape[-1], parts = PartsOf(rows);
  const RowMask mask = MaskOf(call, call.inputs[5], sum.shape[1]);
  const bool masked = mask.keep.threshold > 0;
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = parts * width * sizeof(float);
  kernel.run = [=, accumulate_x = Accumulates(call, 0), accumulate_y = Accumulates(call, 1),
                accumulate_scale = Accumulates(call, 2)](const KernelArguments& arguments) {
    float* dscale = Output<float>(arguments, 2);
    auto* partial = reinterpret_cast<float*>(arguments.workspace);
    WithActivation(sum.dtype, [&](auto type) {
      using T = decltype(type);
      AddNormGrad<T> call{Input<T>(arguments, 0),
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
                          mask};
      if (masked) call.mask.keys = Input<int32_t>(arguments, 5);
      WithPieces(width, [&](auto pieces) {
        Launch(arguments, {parts, kThreads, pieces() * kPieceColumns * sizeof(float)},
               AddNormGradKernel<T, pieces()>, call);
      });
    });
    if (dscale != nullptr) SumParts(arguments, partial, parts, width, dscale, accumulate_scale);
  };
  return kernel;
}

}  // namespace syntra
