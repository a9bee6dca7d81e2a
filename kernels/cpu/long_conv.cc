// SPDX-License-Identifier: Apache-2.0
// A task handles a pair of vectors of columns for all examples, so that the filters are transformed
// once, and their gradient is summed over the batch in a fixed order.
#include "kernels/cpu/long_conv.h"

#include <functional>
#include <memory>

#include "base/error.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/long_conv.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/fourier-inl.h"
#include "kernels/depthwise_call.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

constexpr int64_t kArrays = 5;  // of a task

class LongTask {
 public:
  LongTask(const DepthwiseCall& call, const FourierTables& tables, int64_t index, void* memory)
      : call_(call),
        tables_(tables),
        columns_(call.columns, index),
        arrays_(length(), memory),
        filters_(arrays_.Next()),
        spare_(arrays_.Next()),
        rows_(arrays_.Next()),
        gradients_(arrays_.Next()),
        sums_(arrays_.Next()) {}

  template <typename T>
  void Convolve(const float* weights, const T* x, T* y, bool accumulate) {
    TransformFilters(weights);
    for (int64_t example = 0; example < call_.batch; ++example) {
      TransformRows(x, example, rows_);
      MultiplyByFilters(rows_, Product);
      InvertRows(rows_, y, example, accumulate);
    }
  }

  // dx and dw are null where nobody needs them.
  template <typename T>
  void Differentiate(const float* weights, const T* x, const T* dy, T* dx, bool accumulate_x,
                     float* dw, bool accumulate_w) {
    if (dx != nullptr) TransformFilters(weights);
    if (dw != nullptr) Clear(sums_, 0, length());
    for (int64_t example = 0; example < call_.batch; ++example) {
      TransformRows(dy, example, gradients_);
      if (dw != nullptr) {
        TransformRows(x, example, rows_);
        AddToSums();
      }
      if (dx == nullptr) continue;
      MultiplyByFilters(gradients_, ConjugateProduct);
      InvertRows(gradients_, dx, example, accumulate_x);
    }
    if (dw != nullptr) StoreSums(dw, accumulate_w);
  }

 private:
  int64_t length() const { return tables_.plan.length; }

  // Whether some position's tap lies in the sequence.
  bool Reaches(int64_t tap) const {
    return tap >= call_.left - call_.back() && tap <= call_.left + call_.ahead();
  }
  // Where on the circle the distance of a tap lies.
  int64_t PlaceOf(int64_t tap) const { return (call_.left - tap + length()) % length(); }

  template <typename Visit>
  void ForEachFrequency(const Visit& visit) const {
    for (int64_t k = 0; 2 * k <= length(); ++k) visit(k, (length() - k) % length());
  }
  static HWY_INLINE RealPair At(ComplexRows rows, int64_t k, int64_t opposite) {
    return Separate(rows.Load(k), rows.Load(opposite));
  }
  static HWY_INLINE void Put(RealPair pair, ComplexRows rows, int64_t k, int64_t opposite) {
    rows.Store(TogetherOpposite(pair), opposite);
    rows.Store(Together(pair), k);
  }

  template <typename Multiply>
  void MultiplyByFilters(ComplexRows rows, const Multiply& multiply) const {
    ForEachFrequency([&](int64_t k, int64_t opposite) {
      const RealPair of_rows = At(rows, k, opposite), of_filters = At(filters_, k, opposite);
      Put({multiply(of_rows.a, of_filters.a), multiply(of_rows.b, of_filters.b)}, rows, k,
          opposite);
    });
  }

  // The transform of the filters' gradient from one example.
  void AddToSums() const {
    ForEachFrequency([&](int64_t k, int64_t opposite) {
      const RealPair of_x = At(rows_, k, opposite), of_dy = At(gradients_, k, opposite);
      const RealPair sum = At(sums_, k, opposite);
      Put({Sum(sum.a, ConjugateProduct(of_dy.a, of_x.a)),
           Sum(sum.b, ConjugateProduct(of_dy.b, of_x.b))},
          sums_, k, opposite);
    });
  }

  void StoreSums(float* dw, bool accumulate) {
    InverseFourierTransform(tables_, sums_, spare_);
    const float scale = 1 / static_cast<float>(length());
    columns_.ForEachColumn(sums_, [&](int64_t column, const float* from) {
      for (int64_t tap = 0; tap < call_.taps; ++tap) {
        const float sum = Reaches(tap) ? scale * from[PlaceOf(tap) * LaneCount()] : 0.0f;
        float& to = dw[column * call_.taps + tap];
        to = accumulate ? to + sum : sum;
      }
    });
  }

  // The filters, divided by the length, which the inverse transform multiplies by.
  void TransformFilters(const float* weights) {
    Clear(filters_, 0, length());
    const float scale = 1 / static_cast<float>(length());
    columns_.ForEachColumn(filters_, [&](int64_t column, float* to) {
      for (int64_t tap = 0; tap < call_.taps; ++tap) {
        if (!Reaches(tap)) continue;
        to[PlaceOf(tap) * LaneCount()] = scale * weights[column * call_.taps + tap];
      }
    });
    FourierTransform(tables_, filters_, spare_);
  }

  template <typename T>
  void TransformRows(const T* x, int64_t example, ComplexRows& rows) {
    for (int64_t t = 0; t < call_.length; ++t) {
      rows.Store(columns_.Load(x, example * call_.length + t), t);
    }
    Clear(rows, call_.length, length());
    FourierTransform(tables_, rows, spare_);
  }

  template <typename T>
  void InvertRows(ComplexRows& rows, T* y, int64_t example, bool accumulate) {
    InverseFourierTransform(tables_, rows, spare_);
    for (int64_t t = 0; t < call_.length; ++t) {
      columns_.Store(rows.Load(t), y, example * call_.length + t, accumulate);
    }
  }

  const DepthwiseCall& call_;
  const FourierTables& tables_;
  ColumnPair columns_;
  ComplexArrays arrays_;
  ComplexRows filters_, spare_, rows_, gradients_, sums_;
};

size_t LongWorkspace(int64_t length) { return ComplexArrays::BytesOf(length, kArrays); }

// Calls run(task, a value of the activations' type) for all tasks.
template <typename Run>
void ForEachTask(const DepthwiseCall& call, const FourierTables& tables, DType dtype,
                 std::byte* workspace, const Run& run) {
  const size_t bytes = LongWorkspace(tables.plan.length);
  WithActivation(dtype, [&](auto type) {
    ParallelTasks(ColumnPair::CountFor(call.columns), [&](int64_t index) {
      LongTask task(call, tables, index, workspace + ThreadIndex() * bytes);
      run(task, type);
    });
  });
}

void LongConvolve(const OpCall& call, const FourierTables& tables,
                  const KernelArguments& arguments) {
  ForEachTask(DepthwiseCall::Of(call), tables, call.inputs[0].dtype, arguments.workspace,
              [&](LongTask& task, auto type) {
                using T = decltype(type);
                task.Convolve(Input<float>(arguments, 1), Input<T>(arguments, 0),
                              Output<T>(arguments, 0), Accumulates(call, 0));
              });
}

void LongConvolveGrad(const OpCall& call, const FourierTables& tables,
                      const KernelArguments& arguments) {
  ForEachTask(DepthwiseCall::Of(call), tables, call.inputs[0].dtype, arguments.workspace,
              [&](LongTask& task, auto type) {
                using T = decltype(type);
                task.Differentiate(Input<float>(arguments, 1), Input<T>(arguments, 0),
                                   Input<T>(arguments, 3), Output<T>(arguments, 0),
                                   Accumulates(call, 0), Output<float>(arguments, 1),
                                   Accumulates(call, 1));
              });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {
namespace {

HWY_EXPORT(LongWorkspace);
HWY_EXPORT(LongConvolve);
HWY_EXPORT(LongConvolveGrad);

using Run = std::function<void(const FourierTables& tables, const KernelArguments& arguments)>;

BoundKernel Bind(const OpCall& call, const Run& run) {
  const auto tables =
      std::make_shared<const FourierTables>(DepthwiseCall::Of(call).transform_length());
  BoundKernel kernel;
  kernel.accumulates = true;
  const int threads = ThreadCount();
  kernel.workspace_bytes = threads * HWY_DYNAMIC_DISPATCH(LongWorkspace)(tables->plan.length);
  kernel.run = [=](const KernelArguments& arguments) {
    SYNTRA_CHECK(ThreadCount() <= threads, "depthwise_conv was bound for {} threads", threads);
    run(*tables, arguments);
  };
  return kernel;
}

}  // namespace

BoundKernel BindLongConvolution(const OpCall& call) {
  return Bind(call, [call](const FourierTables& tables, const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(LongConvolve)(call, tables, arguments);
  });
}

BoundKernel BindLongConvolutionGrad(const OpCall& call) {
  return Bind(call, [call](const FourierTables& tables, const KernelArguments& arguments) {
    HWY_DYNAMIC_DISPATCH(LongConvolveGrad)(call, tables, arguments);
  });
}

}  // namespace syntra
#endif
