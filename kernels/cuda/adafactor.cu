// SPDX-License-Identifier: Apache-2.0
// adafactor (Shazeer and Stern 2018, as in Mesh TensorFlow). A factored parameter is treated as
// matrices whose rows and columns are the two factored axes, any other as a vector of elements. The
// device reads the hyperparameters, so that a captured step follows the schedule. A further output
// gets the parameter in bf16 (kernels/backend.h).
#include "base/divide.h"
#include "kernels/cuda/multi_tensor.h"
#include "kernels/cuda/reduce.h"
#include "kernels/math/optimizers.h"
#include "kernels/operands.h"
#include "kernels/workspace.h"

namespace syntra {
namespace {

using namespace gpu;

struct Hyper {
  const float* values;

  __device__ float gradient_scale() const { return values[hyper::kGradientScale]; }
  __device__ float beta2() const { return values[hyper::kBeta2]; }
  __device__ bool changes_anything() const { return ChangesAnything(values); }
  __device__ float Average(float average, float value) const {
    return beta2() * average + (1.0f - beta2()) * value;
  }
};

// A parameter [outer, rows, middle, columns, inner]. The axes outer, middle and inner surround the
// factored axes; there is a matrix for each of their indices.
struct Matrices {
  int64_t outer, rows, middle, columns, inner;
  // Whether the op's `row`, whose mean normalises the estimate, has one entry per column (not row).
  bool normalised_by_columns;

  __host__ __device__ int64_t count() const { return outer * middle * inner; }
  // In most parameters the matrices are contiguous.
  __device__ bool dense() const { return middle == 1 && inner == 1; }

  struct Place {
    int64_t matrix, row, column;
  };
  __device__ Place PlaceOf(int64_t element) const {
    if (dense()) {
      const int64_t line = element / columns;
      return {line / rows, line % rows, element % columns};
    }
    const int64_t i = element % inner, column = element / inner % columns;
    const int64_t line = element / (inner * columns), m = line % middle;
    const int64_t row = line / middle % rows, o = line / middle / rows;
    return {(o * middle + m) * inner + i, row, column};
  }
  __device__ int64_t ElementAt(int64_t matrix, int64_t row, int64_t column) const {
    if (dense()) return (matrix * rows + row) * columns + column;
    const int64_t o = matrix / (middle * inner), m = matrix / inner % middle, i = matrix % inner;
    return (((o * rows + row) * middle + m) * columns + column) * inner + i;
  }
  // Indices into the averages [outer, rows, middle, inner] and [outer, middle, columns, inner].
  __device__ int64_t RowAverageAt(int64_t matrix, int64_t row) const {
    const int64_t o = matrix / (middle * inner), rest = matrix % (middle * inner);
    return (o * rows + row) * middle * inner + rest;
  }
  __device__ int64_t ColumnAverageAt(int64_t matrix, int64_t column) const {
    return (matrix / inner * columns + column) * inner + matrix % inner;
  }
  __host__ __device__ int64_t parts() const {
    return rows / 16 < 1 ? 1 : rows / 16 < 64 ? rows / 16 : 64;
  }
};

// The sums of x^2 and of p^2.
struct Squares {
  double x, p;
};

// The beginning of a tensor's workspace: partial sums, and the step that they give.
struct Norms {
  Squares partial[kElementParts];
  float step;
};

struct Tensor {
  Matrices shape;  // unused if the second moment is not factored
  int64_t size;
  double clip_threshold;
  Hyper hyper;
  const float* gradient;
  float* parameter;
  BFloat16* rounded;  // the parameter in bf16; null: not kept
  float* full_average;
  float *row_average, *column_average;
  Norms* norms;
  float *row_sums, *column_parts;       // [matrices, rows], [matrices, parts, columns]
  float *row_factors, *column_factors;  // x = g * row_factor * column_factor

  __host__ __device__ bool factored() const { return full_average == nullptr; }
  __device__ float Square(float unscaled) const {
    const float g = unscaled * hyper.gradient_scale();
    return g * g + static_cast<float>(kAdafactorSquareFloor);
  }
  __device__ float SquareAt(int64_t i) const { return Square(gradient[i]); }
  // x of `count` <= 8 elements from i on. Call it after the averages have been updated.
  __device__ Eight At(int64_t i, int count) const {
    Eight x = LoadEight(gradient + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) x[k] *= hyper.gradient_scale();
    if (factored()) {
      MultiplyByFactors(x, i, count);
      return x;
    }
    const Eight average = LoadEight(full_average + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) x[k] /= sqrtf(average[k]);
    return x;
  }
  // Finding an element's place takes two divisions. Most neighbours are of one row, so they are
  // found together.
  __device__ void MultiplyByFactors(Eight& x, int64_t i, int count) const {
    const Matrices::Place at = shape.PlaceOf(i);
    if (shape.dense() && at.column + count <= shape.columns) {
      const float of_row = RowFactor(at);
      const Eight of_columns = LoadEight(ColumnFactor(at), count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) x[k] = x[k] * of_row * of_columns[k];
      return;
    }
#pragma unroll 1  // rare
    for (int n = 0; n < count; ++n) {
      const Matrices::Place place = shape.PlaceOf(i + n);
      const float of_row = RowFactor(place), of_column = *ColumnFactor(place);
#pragma unroll  // indices that the compiler knows keep the values in registers
      for (int k = 0; k < kEight; ++k) {
        if (k == n) x[k] = x[k] * of_row * of_column;
      }
    }
  }
  __device__ float RowFactor(const Matrices::Place& at) const {
    return row_factors[at.matrix * shape.rows + at.row];
  }
  __device__ const float* ColumnFactor(const Matrices::Place& at) const {
    return column_factors + at.matrix * shape.columns + at.column;
  }
};

// Row sums of the squares, one row per warp.
struct SumRows {
  static int64_t PartsOf(const Tensor& tensor) {
    constexpr int64_t kMostParts = 1024, kRowsAtOnce = kThreads / kWarp;
    const int64_t rows = tensor.shape.count() * tensor.shape.rows;
    return std::min<int64_t>(DivideUp(rows, kRowsAtOnce), kMostParts);
  }
  __device__ void operator()(const Tensor& tensor, Part part) const {
    const Matrices& shape = tensor.shape;
    const int64_t rows = shape.count() * shape.rows, step = part.count * WarpCount();
    for (int64_t row = part.index * WarpCount() + WarpIndex(); row < rows; row += step) {
      float sum = 0.0f;
      for (int64_t j = LaneIndex(); j < shape.columns; j += kWarp) {
        sum += tensor.SquareAt(shape.ElementAt(row / shape.rows, row % shape.rows, j));
      }
      sum = WarpSum(sum);
      if (LaneIndex() == 0) tensor.row_sums[row] = sum;
    }
  }
};

// Column sums of the squares over each part of a matrix's rows.
struct SumColumns {
  static int64_t PartsOf(const Tensor& tensor) {
    return tensor.shape.count() * tensor.shape.parts();
  }
  __device__ void operator()(const Tensor& tensor, Part block) const {
    const Matrices& shape = tensor.shape;
    const int64_t parts = shape.parts(), matrix = block.index / parts, part = block.index % parts;
    const int64_t first = shape.rows * part / parts, last = shape.rows * (part + 1) / parts;
    for (int64_t j = ThreadIndex(); j < shape.columns; j += ThreadCount()) {
      float sum = 0.0f;
      for (int64_t row = first; row < last; ++row) {
        sum += tensor.SquareAt(shape.ElementAt(matrix, row, j));
      }
      tensor.column_parts[block.index * shape.columns + j] = sum;
    }
  }
};

// Updates both moving averages of a matrix and computes the factors.
struct MakeFactors {
  static int64_t PartsOf(const Tensor& tensor) { return tensor.shape.count(); }
  __device__ void operator()(const Tensor& tensor, Part part) const {
    auto& shared = Shared<SumStorage>();
    if (!tensor.hyper.changes_anything()) return;
    const Matrices& shape = tensor.shape;
    const int64_t parts = shape.parts(), matrix = part.index;
    double row_total = 0.0, column_total = 0.0;
    for (int64_t i = ThreadIndex(); i < shape.rows; i += ThreadCount()) {
      const float mean =
          tensor.row_sums[matrix * shape.rows + i] / static_cast<float>(shape.columns);
      float& average = tensor.row_average[shape.RowAverageAt(matrix, i)];
      average = tensor.hyper.Average(average, mean);
      row_total += average;
    }
    for (int64_t j = ThreadIndex(); j < shape.columns; j += ThreadCount()) {
      float sum = 0.0f;
      for (int64_t k = 0; k < parts; ++k) {
        sum += tensor.column_parts[(matrix * parts + k) * shape.columns + j];
      }
      float& average = tensor.column_average[shape.ColumnAverageAt(matrix, j)];
      average = tensor.hyper.Average(average, sum / static_cast<float>(shape.rows));
      column_total += average;
      tensor.column_factors[matrix * shape.columns + j] = 1.0f / sqrtf(average);
    }
    const double norm =
        shape.normalised_by_columns
            ? BlockSum(column_total, shared.of_warp) / static_cast<double>(shape.columns)
            : BlockSum(row_total, shared.of_warp) / static_cast<double>(shape.rows);
    for (int64_t i = ThreadIndex(); i < shape.rows; i += ThreadCount()) {
      const float average = tensor.row_average[shape.RowAverageAt(matrix, i)];
      tensor.row_factors[matrix * shape.rows + i] = static_cast<float>(sqrt(norm / average));
    }
  }
};

// Updates an average that is not factored, then sums x^2 and p^2.
struct SumSquares {
  static int64_t PartsOf(const Tensor& tensor) { return ElementPartsOf(tensor.size); }
  __device__ void operator()(const Tensor& tensor, Part part) const {
    auto& shared = Shared<SumStorage>();
    if (!tensor.hyper.changes_anything()) return;
    Squares sums = {};
    ElementsOf(tensor.size, part, [&](int64_t i, int count) {
      if (!tensor.factored()) UpdateAverage(tensor, i, count);
      const Eight x = tensor.At(i, count), p = LoadEight(tensor.parameter + i, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        if (k >= count) continue;
        sums.x += static_cast<double>(x[k]) * x[k];
        sums.p += static_cast<double>(p[k]) * p[k];
      }
    });
    const Squares sum = SumOfBlock(sums, shared);
    if (ThreadIndex() == 0) tensor.norms->partial[part.index] = sum;
  }
  __device__ static void UpdateAverage(const Tensor& tensor, int64_t i, int count) {
    const Eight gradient = LoadEight(tensor.gradient + i, count);
    Eight average = LoadEight(tensor.full_average + i, count);
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      average[k] = tensor.hyper.Average(average[k], tensor.Square(gradient[k]));
    }
    StoreEight(average, tensor.full_average + i, count);
  }
  __device__ static Squares SumOfBlock(const Squares& sums, SumStorage& shared) {
    const double x = BlockSum(sums.x, shared.of_warp);
    SyncThreads();
    return {x, BlockSum(sums.p, shared.of_warp)};
  }
};

struct MakeStep {
  static int64_t PartsOf(const Tensor&) { return 1; }
  __device__ void operator()(const Tensor& tensor, Part) const {
    if (!tensor.hyper.changes_anything()) return;
    Squares sums = {};
    const int64_t parts = ElementPartsOf(tensor.size);
    for (int64_t part = ThreadIndex(); part < parts; part += ThreadCount()) {
      sums.x += tensor.norms->partial[part].x;
      sums.p += tensor.norms->partial[part].p;
    }
    const Squares sum = SumSquares::SumOfBlock(sums, Shared<SumStorage>());
    if (ThreadIndex() != 0) return;
    tensor.norms->step =
        AdafactorStep(tensor.hyper.values, tensor.clip_threshold, sum.x, sum.p, tensor.size);
  }
};

// p -= step * x.
struct Apply {
  static int64_t PartsOf(const Tensor& tensor) { return ElementwiseParts(tensor.size); }
  __device__ void operator()(const Tensor& tensor, Part part) const {
    if (!tensor.hyper.changes_anything()) return;
    const float step = tensor.norms->step;
    ElementsOf(tensor.size, part, [&](int64_t i, int count) {
      Eight p = LoadEight(tensor.parameter + i, count);
      const Eight x = tensor.At(i, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) p[k] -= step * x[k];
      StoreEight(p, tensor.parameter + i, count);
      if (tensor.rounded != nullptr) StoreEight(p, tensor.rounded + i, count);
    });
  }
};

// The matrices of a parameter, given its two factored axes.
Matrices MatricesOf(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const int64_t row_axis = call.attributes.Int("row_axis");
  const int64_t column_axis = call.attributes.Int("column_axis");
  if (column_axis < 0) return {};
  const int64_t first = std::min(row_axis, column_axis), second = std::max(row_axis, column_axis);
  const auto extent = [&](int64_t begin, int64_t end) {
    int64_t product = 1;
    for (int64_t axis = begin; axis < end; ++axis) product *= shape[static_cast<int>(axis)];
    return product;
  };
  // `row` lacks row_axis. If row_axis is the axis of rows, `row` has one entry per column.
  return {extent(0, first),           extent(first, first + 1),         extent(first + 1, second),
          extent(second, second + 1), extent(second + 1, shape.rank()), row_axis == first};
}

// A tensor whose addresses are not set yet, and the offsets of its parts of the workspace.
struct Bound {
  Tensor tensor;
  size_t norms, row_sums, column_parts, row_factors, column_factors;

  Bound(const OpCall& call, WorkspaceLayout& layout) : tensor{.shape = MatricesOf(call)} {
    tensor.size = call.inputs[0].shape.size();
    tensor.clip_threshold = call.attributes.Number("clip_threshold");
    const Matrices& shape = tensor.shape;
    const auto place = [&layout](int64_t count) { return layout.Place(count * sizeof(float)); };
    norms = layout.Place(sizeof(Norms));
    row_sums = place(shape.count() * shape.rows);
    column_parts = place(shape.count() * shape.parts() * shape.columns);
    row_factors = place(shape.count() * shape.rows);
    column_factors = place(shape.count() * shape.columns);
  }

  Tensor At(const KernelArguments& own) const {
    const auto floats = [&](size_t at) { return reinterpret_cast<float*>(own.workspace + at); };
    Tensor result = tensor;
    result.gradient = Input<float>(own, 0);
    result.hyper = {Input<float>(own, 1)};
    result.parameter = Output<float>(own, 0);
    result.norms = reinterpret_cast<Norms*>(own.workspace + norms);
    const size_t updated = tensor.shape.count() == 0 ? 2 : 3;
    if (own.outputs.size() > updated) result.rounded = Output<BFloat16>(own, updated);
    if (tensor.shape.count() == 0) {
      result.full_average = Output<float>(own, 1);
      return result;
    }
    const bool swapped = tensor.shape.normalised_by_columns;
    result.row_average = Output<float>(own, swapped ? 2 : 1);
    result.column_average = Output<float>(own, swapped ? 1 : 2);
    result.row_sums = floats(row_sums);
    result.column_parts = floats(column_parts);
    result.row_factors = floats(row_factors);
    result.column_factors = floats(column_factors);
    return result;
  }
};

}  // namespace

std::optional<BoundKernel> cuda_adafactor(std::span<const OpCall> calls) {
  WorkspaceLayout layout;
  std::vector<Bound> bound;
  for (const OpCall& call : calls) bound.emplace_back(call, layout);
  BoundKernel kernel;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [bound, places = OperandPlaces(calls),
                tensors = std::vector<Tensor>()](const KernelArguments& all) mutable {
    tensors.clear();
    for (size_t i = 0; i < bound.size(); ++i) tensors.push_back(bound[i].At(places.Of(all, i)));
    ForEachTensor(all, tensors, SumRows{});
    ForEachTensor(all, tensors, SumColumns{});
    ForEachTensor(all, tensors, MakeFactors{}, sizeof(SumStorage));
    ForEachTensor(all, tensors, SumSquares{}, sizeof(SumStorage));
    ForEachTensor(all, tensors, MakeStep{}, sizeof(SumStorage));
    ForEachTensor(all, tensors, Apply{});
  };
  return kernel;
}

}  // namespace syntra
