// SPDX-License-Identifier: Apache-2.0
// fourier_transform. Let X = C - iS be the transform over an example's positions. Row j of the
// result is the real part of the transform over columns of (C x)_j - i (S x)_j. Row N - j is that
// of its conjugate, which has the same numbers in reversed order. So it is enough to transform half
// of the rows.
#include "base/divide.h"
#include "base/error.h"
#include "core/buffer.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fourier_transform.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/fourier-inl.h"
#include "kernels/cpu/fourier_transform.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

using Indices = hn::Vec<hn::RebindToSigned<FloatTag>>;

// 0, stride, 2 stride, ..
HWY_INLINE Indices Steps(int64_t stride) {
  const hn::RebindToSigned<FloatTag> d;
  return hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(stride)));
}

// Numbers that lie `stride` apart.
HWY_INLINE FloatVector LoadApart(const float* from, int64_t stride, Whole) {
  return hn::GatherIndex(FloatTag(), from, Steps(stride));
}
HWY_INLINE FloatVector LoadApart(const float* from, int64_t stride, Part part) {
  float lanes[hn::MaxLanes(FloatTag())] = {};
  for (size_t i = 0; i < part.count; ++i) lanes[i] = from[static_cast<int64_t>(i) * stride];
  return hn::LoadU(FloatTag(), lanes);
}

// An example's transform over positions, [rows, stride()] complex numbers.
class HalfTransform {
 public:
  HalfTransform(const FourierCall& call, void* memory)
      : stride_(StrideOf(call)), rows_(ComplexRows::Of(memory, call.rows() * stride_)) {}

  // A multiple of a vector, and no multiple of a page, so that the rows of a column lie in
  // different sets of a cache.
  static int64_t StrideOf(const FourierCall& call) {
    return (2 * ColumnPair::CountFor(call.width) + 1) * LaneCount();
  }
  static size_t BytesFor(const FourierCall& call) {
    return 2 * sizeof(float) * call.rows() * StrideOf(call);
  }

  void StoreColumns(RealPair pair, int64_t row, int64_t pair_index) const {
    const FloatTag d;
    const int64_t at = row * stride_ + pair_index * 2 * LaneCount();
    hn::StoreU(pair.a.re, d, rows_.re + at);
    hn::StoreU(pair.a.im, d, rows_.im + at);
    hn::StoreU(pair.b.re, d, rows_.re + at + LaneCount());
    hn::StoreU(pair.b.im, d, rows_.im + at + LaneCount());
  }
  // A column of the rows from `first` on.
  template <typename Lanes>
  ComplexVector LoadRows(int64_t first, int64_t column, Lanes lanes) const {
    const int64_t at = first * stride_ + column;
    return {LoadApart(rows_.re + at, stride_, lanes), LoadApart(rows_.im + at, stride_, lanes)};
  }

 private:
  int64_t stride_;
  ComplexRows rows_;
};

// Transforms a pair of vectors of columns over positions.
template <typename T>
void TransformPositions(const FourierCall& call, const T* x, int64_t index, ComplexArrays arrays,
                        const HalfTransform& half) {
  ComplexRows data = arrays.Next(), spare = arrays.Next();
  const ColumnPair columns(call.width, index);
  for (int64_t t = 0; t < call.length; ++t) data.Store(columns.Load(x, t), t);
  Clear(data, call.length, call.period);
  FourierTransform(*call.of_positions, data, spare);
  for (int64_t j = 0; j < call.rows(); ++j) {
    const int64_t opposite = (call.period - j) % call.period;
    half.StoreColumns(Separate(data.Load(j), data.Load(opposite)), j, index);
  }
}

// Stores the real parts of sequence `lane` as a row. The transform of its conjugate has the same
// numbers: first the first one, then the others in reversed order.
template <typename T>
void StoreRow(const FourierCall& call, const ComplexRows& data, int64_t lane, bool conjugate,
              T* row) {
  const FloatVector factor = hn::Set(FloatTag(), call.factor);
  const auto store = [&](const float* from, int64_t stride, T* to, int64_t count) {
    VectorLoop(count, [&](int64_t i, auto lanes) {
      const FloatVector value = LoadApart(from + i * stride, stride, lanes);
      StoreResult(hn::Mul(factor, value), to + i, lanes, call.accumulate);
    });
  };
  const float* numbers = data.re + lane;
  if (conjugate) {
    store(numbers, 0, row, 1);
    store(numbers + (call.width - 1) * LaneCount(), -LaneCount(), row + 1, call.width - 1);
  } else {
    store(numbers, LaneCount(), row, call.width);
  }
}

// Transforms a vector of rows over columns, and stores them and their mirror images.
template <typename T>
void TransformColumns(const FourierCall& call, const HalfTransform& half, int64_t first,
                      ComplexArrays arrays, T* y) {
  ComplexRows data = arrays.Next(), spare = arrays.Next();
  const int64_t count = std::min(LaneCount(), call.rows() - first);
  for (int64_t k = 0; k < call.width; ++k) {
    const Part part{static_cast<size_t>(count)};
    data.Store(
        count == LaneCount() ? half.LoadRows(first, k, Whole()) : half.LoadRows(first, k, part), k);
  }
  FourierTransform(*call.of_columns, data, spare);
  for (int64_t lane = 0; lane < count; ++lane) {
    const int64_t j = first + lane, mirrored = call.period - j;
    StoreRow(call, data, lane, false, y + j * call.width);
    if (j > 0 && mirrored != j && mirrored < call.length) {
      StoreRow(call, data, lane, true, y + mirrored * call.width);
    }
  }
}

int64_t LongestOf(const FourierCall& call) { return std::max(call.period, call.width); }

size_t FourierTaskBytes(const FourierCall& call) {
  return ComplexArrays::BytesOf(LongestOf(call), 2);
}
size_t FourierHalfBytes(const FourierCall& call) { return AlignUp(HalfTransform::BytesFor(call)); }
// The number of threads that each transform their own examples; 1: all threads share each example.
int64_t FourierThreads(const FourierCall& call) {
  return call.batch >= call.threads ? call.threads : 1;
}
size_t FourierWorkspace(const FourierCall& call) {
  return FourierThreads(call) * FourierHalfBytes(call) + call.threads * FourierTaskBytes(call);
}

// With as many examples as threads each thread transforms whole ones: what it writes between the
// two transforms stays in its caches. With fewer, all share the work of one example after another.
void TransformBatch(const FourierCall& call, const KernelArguments& arguments) {
  const int64_t threads = FourierThreads(call);
  std::byte* const of_tasks = arguments.workspace + threads * FourierHalfBytes(call);
  const auto arrays = [&] {
    return ComplexArrays(LongestOf(call), of_tasks + ThreadIndex() * FourierTaskBytes(call));
  };
  const int64_t row_groups = DivideUp(call.rows(), LaneCount());
  WithActivation(call.dtype, [&](auto type) {
    using T = decltype(type);
    const auto transform = [&](int64_t example) {
      const HalfTransform half(call, arguments.workspace + ThreadIndex() * FourierHalfBytes(call));
      const int64_t at = example * call.length * call.width;
      ParallelTasks(ColumnPair::CountFor(call.width), [&](int64_t index) {
        TransformPositions(call, Input<T>(arguments, 0) + at, index, arrays(), half);
      });
      ParallelTasks(row_groups, [&](int64_t group) {
        TransformColumns(call, half, group * LaneCount(), arrays(), Output<T>(arguments, 0) + at);
      });
    };
    if (threads > 1) {
      ParallelTasks(call.batch, transform);
    } else {
      for (int64_t example = 0; example < call.batch; ++example) transform(example);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(FourierWorkspace);
HWY_EXPORT(TransformBatch);

std::optional<BoundKernel> cpu_fourier_transform(const OpCall& call) {
  const FourierCall fourier(call);
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = HWY_DYNAMIC_DISPATCH(FourierWorkspace)(fourier);
  kernel.run = [fourier](const KernelArguments& arguments) {
    SYNTRA_CHECK(ThreadCount() <= fourier.threads, "fourier_transform was bound for {} threads",
                 fourier.threads);
    HWY_DYNAMIC_DISPATCH(TransformBatch)(fourier, arguments);
  };
  return kernel;
}

}  // namespace syntra
#endif
