// SPDX-License-Identifier: Apache-2.0
// The ops that are loops over strided operands: add, multiply and broadcast_to, and those that only
// move elements.
#include "base/divide.h"
#include "core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/strided.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/strided-inl.h"
#include "kernels/cpu/strided.h"
#include "kernels/pieces.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

struct Sum {
  HWY_INLINE FloatVector operator()(FloatVector a, FloatVector b) const { return hn::Add(a, b); }
};
struct Product {
  HWY_INLINE FloatVector operator()(FloatVector a, FloatVector b) const { return hn::Mul(a, b); }
};

// Rows that are long are split into pieces, so that threads can share one.
constexpr int64_t kPiece = 4096;

// Calls row(places, first, count) for every piece [first, first + count) of every row.
template <typename Row>
void ForEachRow(const StridedLoop<3>& loop, const Row& row) {
  const int64_t inner = loop.inner(), pieces = DivideUp(inner, kPiece);
  ParallelFor(loop.rows() * pieces, RowGrain(std::min(inner, kPiece)),
              [&](int64_t begin, int64_t end) {
                RowCursor<3> cursor(loop, begin / pieces);
                for (int64_t item = begin; item < end; ++item) {
                  const int64_t piece = item % pieces, first = piece * kPiece;
                  row(cursor.places(), first, std::min(kPiece, inner - first));
                  if (piece + 1 == pieces) cursor.Next();
                }
              });
}

template <typename Y, typename A, typename B, typename Function>
void StridedRows(const StridedLoop<3>& loop, bool accumulate, Y* y, const A* a, const B* b,
                 Function function) {
  const auto run = [&](auto to, auto left, auto right) {
    ForEachRow(loop, [=](const Places<3>& at, int64_t first, int64_t count) {
      Y* to_row = y + at.of[0] + first * to;
      const A* a_row = a + at.of[1] + first * left;
      const B* b_row = b + at.of[2] + first * right;
      VectorLoop(count, [=](int64_t j, auto lanes) {
        const FloatVector value =
            function(LoadStrided(a_row, left, j, lanes), LoadStrided(b_row, right, j, lanes));
        StoreStrided(value, to_row, to, j, lanes, accumulate);
      });
    });
  };
  if (loop.inner_stride(0) == 1 && loop.inner_stride(1) == 1) {
    const std::integral_constant<int64_t, 1> one;
    return WithStride(loop.inner_stride(2), [&](auto right) { run(one, one, right); });
  }
  run(loop.inner_stride(0), loop.inner_stride(1), loop.inner_stride(2));
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

namespace {

// The axis of a copy that exchanges places with the last one, so that it is made of transposed
// matrices; -1 if it is another call.
int ExchangedAxis(const StridedCall& call) {
  const StridedLoop<3>& loop = call.loop;
  if (call.b != DType::kNone || call.y != call.a || call.accumulate) return -1;
  if (loop.inner_stride(0) != 1 || loop.inner_stride(1) == 0) return -1;
  for (int i = 0; i + 1 < loop.rank; ++i) {
    if (loop.stride[1][i] == 1 && loop.stride[0][i] == loop.inner()) return i;
  }
  return -1;
}

void RunTransposed(const StridedCall& call, int axis, void* y, const void* a) {
  StridedLoop<3> matrices = call.loop;
  const Transposition matrix{matrices.inner(), matrices.extent[axis], matrices.inner_stride(1),
                             call.a};
  const size_t size = SizeOf(call.a);
  matrices.extent[axis] = matrices.extent[matrices.rank - 1] = 1;
  ParallelTasks(matrices.rows(), [&](int64_t i) {
    const Places<3> at = matrices.Row(i);
    Transpose(matrix, static_cast<const std::byte*>(a) + (call.a_offset + at.of[1]) * size,
              static_cast<std::byte*>(y) + (call.y_offset + at.of[0]) * size);
  });
}

}  // namespace

void RunStrided(const StridedCall& call, void* y, const void* a, const void* b) {
  if (const int axis = a == nullptr ? -1 : ExchangedAxis(call); axis >= 0) {
    return RunTransposed(call, axis, y, a);
  }
  HWY_DYNAMIC_DISPATCH(Strided)(call, y, a, b);
}

void RunCopies(std::span<const StridedCall> copies, void* y, std::span<void* const> from) {
  for (size_t i = 0; i < copies.size(); ++i) RunStrided(copies[i], y, from[i], nullptr);
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

namespace {

BoundKernel BindBroadcast(const OpCall& call, StridedOp op) {
  return BindStrided(StridedCall::Broadcast(call, op, call.outputs[0].shape));
}

// The kernel of an op whose output is made of pieces.
BoundKernel BindPieces(const OpCall& call, PiecesOfCall* pieces_of) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [pieces = pieces_of(call)](const KernelArguments& arguments) {
    for (const auto& [copy, input] : pieces) {
      const void* from = input == Piece::kZeros ? nullptr : arguments.inputs[input];
      RunStrided(copy, arguments.outputs[0], from, nullptr);
    }
  };
  return kernel;
}

}  // namespace

std::optional<BoundKernel> cpu_add(const OpCall& call) {
  return BindBroadcast(call, StridedOp::kAdd);
}
std::optional<BoundKernel> cpu_multiply(const OpCall& call) {
  return BindBroadcast(call, StridedOp::kMultiply);
}
std::optional<BoundKernel> cpu_broadcast_to(const OpCall& call) {
  return BindBroadcast(call, StridedOp::kMultiply);
}

std::optional<BoundKernel> cpu_concatenate(const OpCall& call) {
  return BindPieces(call, ConcatenatePieces);
}
std::optional<BoundKernel> cpu_pad(const OpCall& call) { return BindPieces(call, PadPieces); }
std::optional<BoundKernel> cpu_slice(const OpCall& call) { return BindPieces(call, SlicePieces); }
std::optional<BoundKernel> cpu_transpose(const OpCall& call) {
  return BindPieces(call, TransposePieces);
}

}  // namespace syntra
#endif
