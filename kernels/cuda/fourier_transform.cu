// SPDX-License-Identifier: Apache-2.0
// fourier_transform in two launches, as on the CPU (kernels/cpu/fourier_transform.cc): over
// positions, two columns of real numbers at a time, then over columns of half of the rows, whose
// conjugates are the other half. A block keeps a few sequences in shared memory, where the passes
// move them between two arrays.
#include "base/divide.h"
#include "kernels/cuda/launch.h"
#include "kernels/fourier_plan.h"
#include "kernels/operands.h"
#include "kernels/workspace.h"

namespace syntra {
namespace {

using namespace gpu;

struct Complex {
  float re, im;
};

__device__ __forceinline__ Complex operator+(Complex a, Complex b) {
  return {a.re + b.re, a.im + b.im};
}
__device__ __forceinline__ Complex operator-(Complex a, Complex b) {
  return {a.re - b.re, a.im - b.im};
}
__device__ __forceinline__ Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// -i a.
__device__ __forceinline__ Complex TurnedBack(Complex a) { return {a.im, -a.re}; }

// Sequences of one length in a block's shared memory; number n of all of them lie side by side.
struct Sequences {
  FourierPlan plan;
  const Complex* roots;  // exp(-2 pi i k / length)
  int64_t count;

  static constexpr int64_t kMostBytes = 64 << 10;
  static constexpr int64_t kArrays = 2;

  // As many as fit, but at least one.
  static Sequences Of(int64_t length, const Complex* roots) {
    const int64_t bytes = kArrays * length * static_cast<int64_t>(sizeof(Complex));
    return {FourierPlan::Of(length), roots, std::clamp<int64_t>(kMostBytes / bytes, 1, 8)};
  }
  size_t shared_bytes() const { return kArrays * plan.length * count * sizeof(Complex); }

  __device__ Complex* data() const { return &Shared<Complex>(); }
  __device__ Complex* spare() const { return data() + plan.length * count; }

  // One result of a pass of any radix, by its definition.
  __device__ Complex OneOf(const Complex* from, int64_t radix, int64_t i, int64_t stride,
                           int64_t lane) const {
    const int64_t part = plan.length / radix;
    Complex sum = from[i * count + lane];
    for (int64_t s = 1, power = stride; s < radix; ++s, power = (power + stride) % plan.length) {
      sum = sum + from[(i + s * part) * count + lane] * roots[power];
    }
    return sum;
  }

  __device__ void Four(const Complex* from, int64_t i, int64_t k, int64_t step, int64_t before,
                       int64_t lane, Complex* to) const {
    const int64_t quarter = plan.length / 4 * count, at = i * count + lane;
    const Complex a = from[at], b = from[at + quarter] * roots[k * step];
    const Complex c = from[at + 2 * quarter] * roots[2 * k * step];
    const Complex d = from[at + 3 * quarter] * roots[3 * k * step];
    const Complex even = a + c, odd = a - c, sum = b + d, rest = TurnedBack(b - d);
    to += (4 * i - 3 * k) * count + lane;
    to[0] = even + sum;
    to[before * count] = odd + rest;
    to[2 * before * count] = even - sum;
    to[3 * before * count] = odd - rest;
  }

  // All threads of the block transform data(). Returns where the results are. There is a barrier
  // before and after.
  __device__ const Complex* Transform() const {
    Complex *from = data(), *to = spare();
    int64_t before = 1;
    for (int pass = 0; pass < plan.passes; ++pass) {
      const int64_t radix = plan.radix[pass], part = plan.length / radix, step = part / before;
      SyncThreads();
      for (int64_t item = ThreadIndex(); item < part * count; item += ThreadCount()) {
        const int64_t i = item / count, lane = item % count, k = i % before;
        if (radix == 4) {
          Four(from, i, k, step, before, lane, to);
          continue;
        }
        for (int64_t q = 0; q < radix; ++q) {
          const int64_t place = k + q * before;
          to[((i - k) * radix + place) * count + lane] = OneOf(from, radix, i, place * step, lane);
        }
      }
      Complex* const written = to;
      to = from;
      from = written;
      before *= radix;
    }
    SyncThreads();
    return from;
  }
};

struct FourierRoots {
  int64_t length;
  Complex* roots;

  __device__ void operator()(int64_t begin, int n) const {
    for (int64_t k = begin; k < begin + n; ++k) {
      const double angle = 6.283185307179586 * static_cast<double>(k) / static_cast<double>(length);
      roots[k] = {static_cast<float>(cos(angle)), static_cast<float>(-sin(angle))};
    }
  }
};

template <typename T>
struct Transform {
  const T* x;
  T* y;
  Complex* half;  // [B, rows, D]: x transformed over positions
  int64_t length, width, period, rows;
  float factor;
  bool accumulate;

  __host__ __device__ int64_t pairs() const { return (width + 1) / 2; }
};

// A block for each example and `sequences.count` pairs of columns.
template <typename T>
__global__ void PositionsKernel(Transform<T> call, Sequences sequences) {
  const int64_t groups = DivideUp(call.pairs(), sequences.count);
  const int64_t example = BlockIndex() / groups;
  const int64_t first = BlockIndex() % groups * sequences.count;
  for (int64_t item = ThreadIndex(); item < call.period * sequences.count; item += ThreadCount()) {
    const int64_t t = item / sequences.count, column = 2 * (first + item % sequences.count);
    const T* from = call.x + (example * call.length + t) * call.width + column;
    const bool there = t < call.length;
    sequences.data()[item] = {there && column < call.width ? ToFloat(from[0]) : 0.0f,
                              there && column + 1 < call.width ? ToFloat(from[1]) : 0.0f};
  }
  const Complex* data = sequences.Transform();
  for (int64_t item = ThreadIndex(); item < call.rows * sequences.count; item += ThreadCount()) {
    const int64_t j = item / sequences.count, lane = item % sequences.count;
    const int64_t column = 2 * (first + lane);
    const Complex at = data[item];
    const Complex opposite = data[(call.period - j) % call.period * sequences.count + lane];
    Complex* to = call.half + (example * call.rows + j) * call.width + column;
    if (column < call.width) to[0] = {(at.re + opposite.re) / 2, (at.im - opposite.im) / 2};
    if (column + 1 < call.width) to[1] = {(at.im + opposite.im) / 2, (opposite.re - at.re) / 2};
  }
}

// A block for each example and `sequences.count` rows.
template <typename T>
__global__ void ColumnsKernel(Transform<T> call, Sequences sequences) {
  const int64_t groups = DivideUp(call.rows, sequences.count);
  const int64_t example = BlockIndex() / groups;
  const int64_t first = BlockIndex() % groups * sequences.count;
  const int64_t count = call.rows - first < sequences.count ? call.rows - first : sequences.count;
  const Complex* half = call.half + (example * call.rows + first) * call.width;
  for (int64_t item = ThreadIndex(); item < sequences.count * call.width; item += ThreadCount()) {
    const int64_t row = item / call.width, k = item % call.width;
    sequences.data()[k * sequences.count + row] = row < count ? half[item] : Complex{0.0f, 0.0f};
  }
  const Complex* data = sequences.Transform();
  T* const y = call.y + example * call.length * call.width;
  for (int64_t item = ThreadIndex(); item < count * call.width; item += ThreadCount()) {
    const int64_t row = item / call.width, k = item % call.width;
    const int64_t j = first + row, mirrored = call.period - j;
    const float value = call.factor * data[k * sequences.count + row].re;
    StoreResult(value, y + j * call.width + k, call.accumulate);
    if (j > 0 && mirrored != j && mirrored < call.length) {
      const int64_t column = (call.width - k) % call.width;
      StoreResult(value, y + mirrored * call.width + column, call.accumulate);
    }
  }
}

}  // namespace

std::optional<BoundKernel> cuda_fourier_transform(const OpCall& call) {
  const TensorType x = call.inputs[0];
  const int64_t batch = x.shape[0], length = x.shape[1], width = x.shape[2];
  const int64_t period = call.attributes.Int("period"), rows = std::min(length, period / 2 + 1);
  for (const int64_t each : {period, width}) {
    if (Sequences::Of(each, nullptr).shared_bytes() > MostSharedBytes()) return std::nullopt;
  }
  WorkspaceLayout layout;
  const size_t of_positions = layout.Place(period * sizeof(Complex));
  const size_t of_columns = layout.Place(width * sizeof(Complex));
  const size_t half = layout.Place(batch * rows * width * sizeof(Complex));
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=, factor = static_cast<float>(call.attributes.Number("factor")),
                accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    const auto at = [&](size_t offset) {
      return reinterpret_cast<Complex*>(arguments.workspace + offset);
    };
    const auto sequences = [&](int64_t each, size_t roots) {
      Elementwise(arguments, each, FourierRoots{each, at(roots)});
      return Sequences::Of(each, at(roots));
    };
    const Sequences positions = sequences(period, of_positions);
    const Sequences columns = sequences(width, of_columns);
    const auto blocks = [&](int64_t items, const Sequences& of) {
      return Grid{batch * DivideUp(items, of.count), kThreads, of.shared_bytes()};
    };
    WithActivation(x.dtype, [&](auto type) {
      using T = decltype(type);
      const Transform<T> transform{Input<T>(arguments, 0),
                                   Output<T>(arguments, 0),
                                   at(half),
                                   length,
                                   width,
                                   period,
                                   rows,
                                   factor,
                                   accumulate};
      Launch(arguments, blocks(transform.pairs(), positions), PositionsKernel<T>, transform,
             positions);
      Launch(arguments, blocks(rows, columns), ColumnsKernel<T>, transform, columns);
    });
  };
  return kernel;
}

}  // namespace syntra
