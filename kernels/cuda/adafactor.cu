// adafactor (Shazeer and Stern 2018, as in Mesh TensorFlow): a parameter seen as matrices of rows
// and columns, along the two axes that are factored, or as one run of elements. The hyperparameters
// are read on the device, so that a captured step follows the schedule.
#include "kernels/cuda/reduce.h"
#include "kernels/operands.h"
#include "kernels/workspace.h"

namespace syntra {
namespace {

using namespace gpu;

constexpr float kSquareFloor = 1e-30f;

// hyper = (rate, gradient_scale, beta2).
struct Hyper {
  const float* values;

  __device__ float rate() const { return values[0]; }
  __device__ float gradient_scale() const { return values[1]; }
  __device__ float beta2() const { return values[2]; }
  __device__ bool changes_anything() const { return std::isfinite(gradient_scale()); }
  __device__ float Average(float average, float value) const {
    return beta2() * average + (1.0f - beta2()) * value;
  }
};

// Begins every workspace: where sums are formed, and what they leave for the step.
struct Norms {
  double partial[kElementParts];
  double x_squares, p_squares;
};

struct KeepSum {
  double* to;
  __device__ void operator()(double sum) const { *to = sum; }
};

// What clipping and the parameter's own scale leave of the rate.
__device__ float StepOf(const Hyper& hyper, const Norms& norms, double clip_threshold,
                        int64_t count) {
  const auto size = static_cast<double>(count);
  const double clip = fmax(1.0, sqrt(norms.x_squares / size) / clip_threshold);
  return static_cast<float>(hyper.rate() * fmax(sqrt(norms.p_squares / size), 1e-3) / clip);
}

// x = g * rsqrt(v) for an unfactored parameter; the pass that forms the sum of x^2 updates v.
struct FullTerm {
  const float* gradient;
  Hyper hyper;
  float* average;

  __device__ float At(int64_t i) const {
    return gradient[i] * hyper.gradient_scale() / sqrtf(average[i]);
  }
  __device__ double operator()(int64_t i) const {
    if (!hyper.changes_anything()) return 0.0;
    const float g = gradient[i] * hyper.gradient_scale();
    average[i] = hyper.Average(average[i], g * g + kSquareFloor);
    const double x = At(i);
    return x * x;
  }
};

// A parameter [outer, rows, middle, columns, inner], where outer, middle and inner are what lies
// around the factored axes: a matrix for each of their indices.
struct Matrices {
  int64_t outer, rows, middle, columns, inner;
  // Whether the op's `row`, whose mean normalises the estimate, has an entry per column here.
  bool normalised_by_columns;

  __host__ __device__ int64_t count() const { return outer * middle * inner; }
  __host__ __device__ int64_t size() const { return count() * rows * columns; }
  // Mostly the matrices lie one behind the other.
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
  // Of the averages [outer, rows, middle, inner] and [outer, middle, columns, inner].
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

struct Factored {
  Matrices shape;
  Hyper hyper;
  const float* gradient;
  float *row_average, *column_average;
  float *row_sums, *column_parts;       // [matrices, rows], [matrices, parts, columns]
  float *row_factors, *column_factors;  // x = g * row_factor * column_factor

  __device__ float SquareAt(int64_t i) const {
    const float g = gradient[i] * hyper.gradient_scale();
    return g * g + kSquareFloor;
  }
  __device__ float At(int64_t i) const {
    const Matrices::Place at = shape.PlaceOf(i);
    return gradient[i] * hyper.gradient_scale() * row_factors[at.matrix * shape.rows + at.row] *
           column_factors[at.matrix * shape.columns + at.column];
  }
  __device__ double operator()(int64_t i) const {
    const double x = At(i);
    return x * x;
  }
};

// Row sums of the squares: a warp takes a row.
__global__ void RowSumsKernel(Factored call) {
  const Matrices& shape = call.shape;
  const int64_t rows = shape.count() * shape.rows, step = BlockCount() * WarpCount();
  for (int64_t row = BlockIndex() * WarpCount() + WarpIndex(); row < rows; row += step) {
    float sum = 0.0f;
    for (int64_t j = LaneIndex(); j < shape.columns; j += kWarp) {
      sum += call.SquareAt(shape.ElementAt(row / shape.rows, row % shape.rows, j));
    }
    sum = WarpSum(sum);
    if (LaneIndex() == 0) call.row_sums[row] = sum;
  }
}

// Column sums of the squares over a part of a matrix's rows: a block takes a part.
__global__ void ColumnPartsKernel(Factored call) {
  const Matrices& shape = call.shape;
  const int64_t parts = shape.parts(), matrix = BlockIndex() / parts, part = BlockIndex() % parts;
  const int64_t first = shape.rows * part / parts, last = shape.rows * (part + 1) / parts;
  for (int64_t j = ThreadIndex(); j < shape.columns; j += ThreadCount()) {
    float sum = 0.0f;
    for (int64_t row = first; row < last; ++row) {
      sum += call.SquareAt(shape.ElementAt(matrix, row, j));
    }
    call.column_parts[BlockIndex() * shape.columns + j] = sum;
  }
}

// Updates both moving averages of a matrix and leaves the factors: a block takes a matrix.
__global__ void FactorsKernel(Factored call) {
  auto& shared = Shared<SumStorage>();
  if (!call.hyper.changes_anything()) return;
  const Matrices& shape = call.shape;
  const int64_t parts = shape.parts(), matrix = BlockIndex();
  double row_total = 0.0, column_total = 0.0;
  for (int64_t i = ThreadIndex(); i < shape.rows; i += ThreadCount()) {
    const float mean = call.row_sums[matrix * shape.rows + i] / static_cast<float>(shape.columns);
    float& average = call.row_average[shape.RowAverageAt(matrix, i)];
    average = call.hyper.Average(average, mean);
    row_total += average;
  }
  for (int64_t j = ThreadIndex(); j < shape.columns; j += ThreadCount()) {
    float sum = 0.0f;
    for (int64_t part = 0; part < parts; ++part) {
      sum += call.column_parts[(matrix * parts + part) * shape.columns + j];
    }
    float& average = call.column_average[shape.ColumnAverageAt(matrix, j)];
    average = call.hyper.Average(average, sum / static_cast<float>(shape.rows));
    column_total += average;
    call.column_factors[matrix * shape.columns + j] = 1.0f / sqrtf(average);
  }
  const double norm =
      shape.normalised_by_columns
          ? BlockSum(column_total, shared.of_warp) / static_cast<double>(shape.columns)
          : BlockSum(row_total, shared.of_warp) / static_cast<double>(shape.rows);
  for (int64_t i = ThreadIndex(); i < shape.rows; i += ThreadCount()) {
    const float average = call.row_average[shape.RowAverageAt(matrix, i)];
    call.row_factors[matrix * shape.rows + i] = static_cast<float>(sqrt(norm / average));
  }
}

// p -= step * x.
template <typename Update>
struct Apply {
  Update update;
  Hyper hyper;
  const Norms* norms;
  double clip_threshold;
  float* parameter;
  int64_t size;

  __device__ void operator()(int64_t i, int count) const {
    if (!hyper.changes_anything()) return;
    const float step = StepOf(hyper, *norms, clip_threshold, size);
    for (int64_t k = i; k < i + count; ++k) parameter[k] -= step * update.At(k);
  }
};

// The sums of x^2 and p^2, then the step. `update`: gives x, and its square as a term of a sum.
template <typename Update>
void Finish(const KernelArguments& arguments, const Update& update, double clip_threshold,
            int64_t count) {
  auto* norms = reinterpret_cast<Norms*>(arguments.workspace);
  auto* parameter = Output<float>(arguments, 0);
  SumElements(arguments, count, update, norms->partial, KeepSum{&norms->x_squares});
  SumElements(arguments, count, ProductTerm<float, float>{parameter, parameter}, norms->partial,
              KeepSum{&norms->p_squares});
  Elementwise(
      arguments, count,
      Apply<Update>{update, {Input<float>(arguments, 1)}, norms, clip_threshold, parameter, count});
}

BoundKernel BindFull(const OpCall& call, double clip_threshold) {
  BoundKernel kernel;
  kernel.workspace_bytes = sizeof(Norms);
  kernel.run = [clip_threshold,
                count = call.inputs[0].shape.size()](const KernelArguments& arguments) {
    const FullTerm term{
        Input<float>(arguments, 0), {Input<float>(arguments, 1)}, Output<float>(arguments, 1)};
    Finish(arguments, term, clip_threshold, count);
  };
  return kernel;
}

BoundKernel BindFactored(const Matrices& shape, double clip_threshold) {
  WorkspaceLayout layout;
  layout.Place(sizeof(Norms));
  const auto place = [&layout](int64_t count) { return layout.Place(count * sizeof(float)); };
  const size_t row_sums = place(shape.count() * shape.rows);
  const size_t column_parts = place(shape.count() * shape.parts() * shape.columns);
  const size_t row_factors = place(shape.count() * shape.rows);
  const size_t column_factors = place(shape.count() * shape.columns);
  BoundKernel kernel;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=](const KernelArguments& arguments) {
    const auto floats = [&](size_t at) {
      return reinterpret_cast<float*>(arguments.workspace + at);
    };
    const Factored factored{shape,
                            {Input<float>(arguments, 1)},
                            Input<float>(arguments, 0),
                            Output<float>(arguments, shape.normalised_by_columns ? 2 : 1),
                            Output<float>(arguments, shape.normalised_by_columns ? 1 : 2),
                            floats(row_sums),
                            floats(column_parts),
                            floats(row_factors),
                            floats(column_factors)};
    Launch(arguments, GridFor(shape.count() * shape.rows * kWarp), RowSumsKernel, factored);
    Launch(arguments, {shape.count() * shape.parts(), kThreads}, ColumnPartsKernel, factored);
    Launch(arguments, {shape.count(), kThreads, sizeof(SumStorage)}, FactorsKernel, factored);
    Finish(arguments, factored, clip_threshold, shape.size());
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cuda_adafactor(const OpCall& call) {
  const Shape& shape = call.inputs[0].shape;
  if (!IsF32(call.inputs[0])) return std::nullopt;
  const double clip_threshold = call.attributes.Number("clip_threshold");
  const int64_t row_axis = call.attributes.Int("row_axis");
  const int64_t column_axis = call.attributes.Int("column_axis");
  if (column_axis < 0) return BindFull(call, clip_threshold);
  const int64_t first = std::min(row_axis, column_axis), second = std::max(row_axis, column_axis);
  const auto extent = [&](int64_t begin, int64_t end) {
    int64_t product = 1;
    for (int64_t axis = begin; axis < end; ++axis) product *= shape[static_cast<int>(axis)];
    return product;
  };
  // `row` lacks row_axis: it has an entry per column of the matrices when that is the axis of rows.
  return BindFactored(
      {extent(0, first), extent(first, first + 1), extent(first + 1, second),
       extent(second, second + 1), extent(second + 1, shape.rank()), row_axis == first},
      clip_threshold);
}

}  // namespace syntra
