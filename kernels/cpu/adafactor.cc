// SPDX-License-Identifier: Apache-2.0
// adafactor (Shazeer and Stern 2018; Mesh TensorFlow). Clipping needs RMS(x) before the first
// element is updated, and x needs the whole second moment. So a factored update reads the gradient
// three times and the parameter twice; one that is not factored reads each twice.
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adafactor.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/adafactor.h"
#include "kernels/cpu/reduce-inl.h"
#include "kernels/math/optimizers.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

using DoubleVector = hn::Vec<hn::ScalableTag<double>>;

constexpr float kSquareFloor = static_cast<float>(kAdafactorSquareFloor);

HWY_INLINE double SumDoubleLanes(DoubleVector sum) {
  return hn::GetLane(hn::SumOfLanes(hn::ScalableTag<double>(), sum));
}

HWY_INLINE FloatVector InverseRoot(FloatVector value) {
  return hn::Div(hn::Set(FloatTag(), 1.0f), hn::Sqrt(value));
}

// The workspace of a factored update.
struct FactoredScratch {
  float *column_sums, *row_sums, *row_factors, *column_factors;
  double *x_squares, *p_squares;

  FactoredScratch(const AdafactorMatrices& m, std::byte* workspace) {
    const AdafactorLayout layout(m);
    const auto floats = [&](size_t offset) { return reinterpret_cast<float*>(workspace + offset); };
    column_sums = floats(layout.column_sums);
    row_sums = floats(layout.row_sums);
    row_factors = floats(layout.row_factors);
    column_factors = floats(layout.column_factors);
    x_squares = reinterpret_cast<double*>(workspace + layout.squares);
    p_squares = x_squares + m.block_count();
  }
};

// Calls body(item, matrix, first, last) for each block of rows, in parallel. Row numbers continue
// from one matrix to the next.
template <typename Body>
void ForEachRowBlock(const AdafactorMatrices& m, const Body& body) {
  const RowBlocks blocks = m.blocks();
  ParallelFor(m.block_count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t matrix = item / blocks.count, block = item % blocks.count;
      body(item, matrix, matrix * m.rows + blocks.begin(block),
           matrix * m.rows + blocks.end(block));
    }
  });
}

// Computes the row sums of u = g^2 + 1e-30 and, for each block, its column sums and the sum of p^2.
void SumSecondMoments(const AdafactorMatrices& m, const float* gradient, float gradient_scale,
                      const float* p, const FactoredScratch& scratch) {
  ForEachRowBlock(m, [&](int64_t item, int64_t, int64_t first, int64_t last) {
    const FloatTag d;
    float* sums = scratch.column_sums + item * m.columns;
    std::fill_n(sums, m.columns, 0.0f);
    DoubleVector p_squares = hn::Zero(hn::ScalableTag<double>());
    for (int64_t row = first; row < last; ++row) {
      FloatVector row_sum = hn::Zero(d);
      VectorLoop(m.columns, [&](int64_t j, auto lanes) {
        const int64_t i = row * m.columns + j;
        const FloatVector g = hn::Mul(Load(gradient + i, lanes), hn::Set(d, gradient_scale));
        const FloatVector u = Valid(hn::MulAdd(g, g, hn::Set(d, kSquareFloor)), lanes);
        row_sum = hn::Add(row_sum, u);
        AddTo(u, sums + j, lanes);
        const FloatVector value = Load(p + i, lanes);
        p_squares = AddProducts(value, value, p_squares);
      });
      scratch.row_sums[row] = SumLanes(row_sum);
    }
    scratch.p_squares[item] = SumDoubleLanes(p_squares);
  });
}

// Updates both moving averages and computes the factors of x = g * row_factor * column_factor.
void UpdateFactors(const AdafactorMatrices& m, double beta2, float* row_average,
                   float* column_average, const FactoredScratch& scratch) {
  const int64_t blocks = m.blocks().count;
  for (int64_t matrix = 0; matrix < m.matrices; ++matrix) {
    float *rows = row_average + matrix * m.rows, *columns = column_average + matrix * m.columns;
    double row_total = 0.0, column_total = 0.0;
    for (int64_t i = 0; i < m.rows; ++i) {
      const double mean = scratch.row_sums[matrix * m.rows + i] / static_cast<double>(m.columns);
      rows[i] = static_cast<float>(beta2 * rows[i] + (1.0 - beta2) * mean);
      row_total += rows[i];
    }
    const float* partial = scratch.column_sums + matrix * blocks * m.columns;
    float* column_factors = scratch.column_factors + matrix * m.columns;
    SumBlocks(partial, blocks, m.columns, column_factors, false);
    for (int64_t j = 0; j < m.columns; ++j) {
      const double mean = column_factors[j] / static_cast<double>(m.rows);
      columns[j] = static_cast<float>(beta2 * columns[j] + (1.0 - beta2) * mean);
      column_total += columns[j];
      column_factors[j] = static_cast<float>(1.0 / std::sqrt(static_cast<double>(columns[j])));
    }
    const double norm = m.normalised_by_columns ? column_total / static_cast<double>(m.columns)
                                                : row_total / static_cast<double>(m.rows);
    for (int64_t i = 0; i < m.rows; ++i) {
      scratch.row_factors[matrix * m.rows + i] = static_cast<float>(std::sqrt(norm / rows[i]));
    }
  }
}

// Computes the sum of x^2 for each block.
void SumUpdates(const AdafactorMatrices& m, const float* gradient, float gradient_scale,
                const FactoredScratch& scratch) {
  ForEachRowBlock(m, [&](int64_t item, int64_t matrix, int64_t first, int64_t last) {
    const float* column_factors = scratch.column_factors + matrix * m.columns;
    DoubleVector squares = hn::Zero(hn::ScalableTag<double>());
    for (int64_t row = first; row < last; ++row) {
      const FloatVector factor = hn::Set(FloatTag(), scratch.row_factors[row] * gradient_scale);
      VectorLoop(m.columns, [&](int64_t j, auto lanes) {
        const FloatVector x = hn::Mul(hn::Mul(Load(gradient + row * m.columns + j, lanes), factor),
                                      Load(column_factors + j, lanes));
        squares = AddProducts(x, x, squares);
      });
    }
    scratch.x_squares[item] = SumDoubleLanes(squares);
  });
}

void ApplyFactored(const AdafactorMatrices& m, const float* gradient, float scale, float* p,
                   const FactoredScratch& scratch) {
  ForEachRowBlock(m, [&](int64_t, int64_t matrix, int64_t first, int64_t last) {
    const float* column_factors = scratch.column_factors + matrix * m.columns;
    for (int64_t row = first; row < last; ++row) {
      const FloatVector factor = hn::Set(FloatTag(), scratch.row_factors[row] * scale);
      VectorLoop(m.columns, [&](int64_t j, auto lanes) {
        const int64_t i = row * m.columns + j;
        const FloatVector x =
            hn::Mul(hn::Mul(Load(gradient + i, lanes), factor), Load(column_factors + j, lanes));
        Store(hn::Sub(Load(p + i, lanes), x), p + i, lanes);
      });
    }
  });
}

void AdafactorFactored(const AdafactorMatrices& m, const float* hyper, double clip_threshold,
                       const AdafactorTensors& tensors, std::byte* workspace) {
  const FactoredScratch scratch(m, workspace);
  const float gradient_scale = hyper[hyper::kGradientScale];
  SumSecondMoments(m, tensors.gradient, gradient_scale, tensors.p, scratch);
  UpdateFactors(m, hyper[hyper::kBeta2], tensors.row_average, tensors.column_average, scratch);
  SumUpdates(m, tensors.gradient, gradient_scale, scratch);
  double x_squares = 0.0, p_squares = 0.0;
  for (int64_t item = 0; item < m.block_count(); ++item) {
    x_squares += scratch.x_squares[item];
    p_squares += scratch.p_squares[item];
  }
  const int64_t count = m.matrices * m.rows * m.columns;
  const float step = AdafactorStep(hyper, clip_threshold, x_squares, p_squares, count);
  ApplyFactored(m, tensors.gradient, step * gradient_scale, tensors.p, scratch);
}

void AdafactorFull(const float* hyper, double clip_threshold, const AdafactorTensors& tensors,
                   int64_t count, double* partial) {
  const float gradient_scale = hyper[hyper::kGradientScale], beta2 = hyper[hyper::kBeta2];
  const auto rest = static_cast<float>(1.0 - double{beta2});
  const float* gradient = tensors.gradient;
  float *p = tensors.p, *average = tensors.average;
  const FloatTag d;
  const hn::ScalableTag<double> d64;
  const int64_t blocks = ElementBlocks(count);
  ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kElementBlock;
      DoubleVector x_squares = hn::Zero(d64), p_squares = hn::Zero(d64);
      VectorLoop(std::min(kElementBlock, count - first), [&](int64_t k, auto lanes) {
        const int64_t i = first + k;
        const FloatVector g = hn::Mul(Load(gradient + i, lanes), hn::Set(d, gradient_scale));
        const FloatVector u = hn::MulAdd(g, g, hn::Set(d, kSquareFloor));
        const FloatVector v =
            hn::MulAdd(hn::Set(d, beta2), Load(average + i, lanes), hn::Mul(hn::Set(d, rest), u));
        Store(v, average + i, lanes);
        const FloatVector x = Valid(hn::Mul(g, InverseRoot(v)), lanes);
        x_squares = AddProducts(x, x, x_squares);
        const FloatVector value = Load(p + i, lanes);
        p_squares = AddProducts(value, value, p_squares);
      });
      partial[2 * block] = SumDoubleLanes(x_squares);
      partial[2 * block + 1] = SumDoubleLanes(p_squares);
    }
  });
  double x_squares = 0.0, p_squares = 0.0;
  for (int64_t block = 0; block < blocks; ++block) {
    x_squares += partial[2 * block];
    p_squares += partial[2 * block + 1];
  }
  const float scale =
      AdafactorStep(hyper, clip_threshold, x_squares, p_squares, count) * gradient_scale;
  ParallelVectorLoop(count, [=](int64_t i, auto lanes) {
    const FloatVector x = hn::Mul(Load(gradient + i, lanes), InverseRoot(Load(average + i, lanes)));
    Store(hn::NegMulAdd(hn::Set(FloatTag(), scale), x, Load(p + i, lanes)), p + i, lanes);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(AdafactorFactored);
HWY_EXPORT(AdafactorFull);

std::optional<BoundKernel> cpu_adafactor(const OpCall& call) {
  const Shape shape = call.inputs[adafactor::kGradient].shape;
  const double clip_threshold = call.attributes.Number("clip_threshold");
  const int64_t row_axis = call.attributes.Int("row_axis");
  const int64_t column_axis = call.attributes.Int("column_axis");
  BoundKernel kernel;
  if (column_axis < 0) {
    const int64_t count = shape.size();
    kernel.workspace_bytes = 2 * ElementBlocks(count) * sizeof(double);
    kernel.run = [=](const KernelArguments& arguments) {
      const float* hyper = Input<float>(arguments, adafactor::kHyper);
      if (!ChangesAnything(hyper)) return;
      HWY_DYNAMIC_DISPATCH(AdafactorFull)
      (hyper, clip_threshold,
       {.gradient = Input<float>(arguments, adafactor::kGradient),
        .p = Output<float>(arguments, adafactor::kParameter),
        .average = Output<float>(arguments, adafactor::kFull)},
       count, reinterpret_cast<double*>(arguments.workspace));
    };
    return kernel;
  }
  const int rank = shape.rank();
  if (std::min(row_axis, column_axis) != rank - 2 || std::max(row_axis, column_axis) != rank - 1) {
    return std::nullopt;
  }
  // `row` lacks row_axis. If row_axis is the axis of rows, `row` has one entry per column.
  const bool row_per_column = row_axis == rank - 2;
  const AdafactorMatrices matrices{.matrices = shape.size() / (shape[-2] * shape[-1]),
                                   .rows = shape[-2],
                                   .columns = shape[-1],
                                   .normalised_by_columns = row_per_column};
  const int by_row = row_per_column ? adafactor::kColumn : adafactor::kRow;
  const int by_column = row_per_column ? adafactor::kRow : adafactor::kColumn;
  kernel.workspace_bytes = AdafactorLayout(matrices).bytes;
  kernel.run = [=](const KernelArguments& arguments) {
    const float* hyper = Input<float>(arguments, adafactor::kHyper);
    if (!ChangesAnything(hyper)) return;
    HWY_DYNAMIC_DISPATCH(AdafactorFactored)
    (matrices, hyper, clip_threshold,
     {.gradient = Input<float>(arguments, adafactor::kGradient),
      .p = Output<float>(arguments, adafactor::kParameter),
      .row_average = Output<float>(arguments, by_row),
      .column_average = Output<float>(arguments, by_column)},
     arguments.workspace);
  };
  return kernel;
}

}  // namespace syntra
#endif
