// SPDX-License-Identifier: Apache-2.0
// The ops that are loops over strided operands: add, multiply and broadcast_to, and those that only
// move elements.
#include "kernels/cuda/strided.h"

#include <algorithm>

#include "kernels/cuda/multi_tensor.h"
#include "kernels/cuda/rows.h"
#include "kernels/pieces.h"

namespace syntra {
namespace gpu {
namespace {

template <typename Y, typename A, typename B>
struct Strided {
  StridedLoop<3> loop;
  Y* y;
  const A* a;  // null: zeros
  const B* b;  // null: a factor of one
  bool add, accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const Places<3> at = loop.Row(row);
    Eight value = {};
    if (a != nullptr) value = LoadStrided(a + at.of[1], loop.inner_stride(1), column, count);
    if (b != nullptr) {
      const Eight other = LoadStrided(b + at.of[2], loop.inner_stride(2), column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) value[k] = add ? value[k] + other[k] : value[k] * other[k];
    }
    StoreStrided(value, y + at.of[0], loop.inner_stride(0), column, count, accumulate);
  }
};

template <typename Y, typename A>
struct CopiedRows {
  Strided<Y, A, float> body;
  int64_t rows, width;
};

struct CopyRows {
  template <typename Y, typename A>
  static int64_t PartsOf(const CopiedRows<Y, A>& copied) {
    return DivideUp(copied.rows * DivideUp(copied.width, int64_t{kEight}), int64_t{kThreads});
  }
  template <typename Y, typename A>
  __device__ void operator()(const CopiedRows<Y, A>& copied, Part part) const {
    ForPieces(copied.rows, copied.width, part, copied.body);
  }
};

template <typename Y, typename A, typename B>
Strided<Y, A, B> BodyOf(const StridedCall& call, void* y, const void* a, const void* b) {
  return {call.loop,
          static_cast<Y*>(y) + call.y_offset,
          static_cast<const A*>(a) + call.a_offset,
          call.b == DType::kNone ? nullptr : static_cast<const B*>(b),
          call.op == StridedOp::kAdd,
          call.accumulate};
}

}  // namespace

void RunStrided(const KernelArguments& arguments, const StridedCall& call, void* y, const void* a,
                const void* b) {
  WithActivation(call.y, [&](auto y_type) {
    WithActivation(call.a, [&](auto a_type) {
      WithActivation(call.b, [&](auto b_type) {
        using Y = decltype(y_type);
        using A = decltype(a_type);
        using B = decltype(b_type);
        Rowwise(arguments, call.loop.rows(), call.loop.inner(), BodyOf<Y, A, B>(call, y, a, b));
      });
    });
  });
}

void RunCopies(const KernelArguments& arguments, std::span<const PlacedCopy> copies) {
  while (!copies.empty()) {
    const StridedCall& first = copies[0].call;
    const auto end = std::ranges::find_if(copies, [&](const PlacedCopy& copy) {
      return copy.call.y != first.y || copy.call.a != first.a;
    });
    const std::span alike = copies.first(end - copies.begin());
    WithActivation(first.y, [&](auto y_type) {
      WithActivation(first.a, [&](auto a_type) {
        using Y = decltype(y_type);
        using A = decltype(a_type);
        std::vector<CopiedRows<Y, A>> all;
        for (const auto& [call, to, from] : alike) {
          all.push_back(
              {BodyOf<Y, A, float>(call, to, from, nullptr), call.loop.rows(), call.loop.inner()});
        }
        ForEachTensor(arguments, all, CopyRows{});
      });
    });
    copies = copies.subspan(alike.size());
  }
}

void RunCopies(const KernelArguments& arguments, std::span<const StridedCall> copies, void* to,
               std::span<void* const> from) {
  std::vector<PlacedCopy> placed;
  for (size_t i = 0; i < copies.size(); ++i) placed.push_back({copies[i], to, from[i]});
  RunCopies(arguments, placed);
}

BoundKernel BindStrided(const StridedCall& call) {
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [call](const KernelArguments& arguments) {
    RunStrided(arguments, call, arguments.outputs[0], arguments.inputs[0],
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
    std::vector<PlacedCopy> copies;
    for (const auto& [copy, input] : pieces) {
      const void* from = input == Piece::kZeros ? nullptr : arguments.inputs[input];
      copies.push_back({copy, arguments.outputs[0], from});
    }
    RunCopies(arguments, copies);
  };
  return kernel;
}

}  // namespace
}  // namespace gpu

std::optional<BoundKernel> cuda_add(const OpCall& call) {
  return gpu::BindBroadcast(call, StridedOp::kAdd);
}
std::optional<BoundKernel> cuda_multiply(const OpCall& call) {
  return gpu::BindBroadcast(call, StridedOp::kMultiply);
}
std::optional<BoundKernel> cuda_broadcast_to(const OpCall& call) {
  return gpu::BindBroadcast(call, StridedOp::kMultiply);
}

std::optional<BoundKernel> cuda_concatenate(const OpCall& call) {
  return gpu::BindPieces(call, ConcatenatePieces);
}
std::optional<BoundKernel> cuda_pad(const OpCall& call) { return gpu::BindPieces(call, PadPieces); }
std::optional<BoundKernel> cuda_slice(const OpCall& call) {
  return gpu::BindPieces(call, SlicePieces);
}
std::optional<BoundKernel> cuda_transpose(const OpCall& call) {
  return gpu::BindPieces(call, TransposePieces);
}

}  // namespace syntra
