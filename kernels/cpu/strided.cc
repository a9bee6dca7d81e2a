// SPDX-License-Identifier: Apache-2.0
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/strided.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/strided-inl.h"
#include "kernels/cpu/strided.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

struct Sum {
  HWY_INLINE FloatVector operator()(FloatVector a, FloatVector b) const { return hn::Add(a, b); }
};
struct Product {
  HWY_INLINE FloatVector operator()(FloatVector a, FloatVector b) const { return hn::Mul(a, b); }
};

// Long rows are split into pieces, so that threads can share one.
constexpr int64_t kPiece = 4096;

template <typename Y, typename A, typename B, typename Function>
void StridedRows(const StridedLoop<3>& loop, bool accumulate, Y* y, const A* a, const B* b,
                 Function function) {
  const int64_t inner = loop.inner(), pieces = (inner + kPiece - 1) / kPiece;
  const int64_t to = loop.inner_stride(0), left = loop.inner_stride(1),
                right = loop.inner_stride(2);
  ParallelFor(loop.rows() * pieces, RowGrain(std::min(inner, kPiece)),
              [=, &loop](int64_t begin, int64_t end) {
                for (int64_t item = begin; item < end; ++item) {
                  const Places<3> at = loop.Row(item / pieces);
                  const int64_t first = item % pieces * kPiece;
                  Y* to_row = y + at.of[0] + first * to;
                  const A* a_row = a + at.of[1] + first * left;
                  const B* b_row = b + at.of[2] + first * right;
                  VectorLoop(std::min(kPiece, inner - first), [=](int64_t j, auto lanes) {
                    StoreStrided(function(LoadStrided(a_row, left, j, lanes),
                                          LoadStrided(b_row, right, j, lanes)),
                                 to_row, to, j, lanes, accumulate);
                  });
                }
              });
}

void Strided(const StridedCall& call, void* y, const void* a, const void* b) {
  static const float zero = 0.0f, one = 1.0f;  // 0 in bf16 too
  if (a == nullptr) a = &zero;
  if (call.b == DType::kNone) b = &one;
  WithActivation(call.y, [&](auto y_type) {
    WithActivation(call.a, [&](auto a_type) {
      WithActivation(call.b, [&](auto b_type) {
        auto* to = static_cast<decltype(y_type)*>(y) + call.y_offset;
        const auto* left = static_cast<const decltype(a_type)*>(a) + call.a_offset;
        const auto* right = static_cast<const decltype(b_type)*>(b);
        if (call.op == StridedOp::kAdd) {
          StridedRows(call.loop, call.accumulate, to, left, right, Sum());
        } else {
          StridedRows(call.loop, call.accumulate, to, left, right, Product());
        }
      });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syntra {

HWY_EXPORT(Strided);

void RunStrided(const StridedCall& call, void* y, const void* a, const void* b) {
  HWY_DYNAMIC_DISPATCH(Strided)(call, y, a, b);
}

BoundKernel BindStrided(const StridedCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    RunStrided(call, arguments.outputs[0], arguments.inputs[0],
               call.b == DType::kNone ? nullptr : arguments.inputs[1]);
  };
  return kernel;
}

BoundKernel BindPieces(std::vector<Piece> pieces) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [pieces = std::move(pieces)](const KernelArguments& arguments) {
    for (const auto& [copy, input] : pieces) {
      const void* from = input == Piece::kZeros ? nullptr : arguments.inputs[input];
      RunStrided(copy, arguments.outputs[0], from, nullptr);
    }
  };
  return kernel;
}

}  // namespace syntra
#endif
