// SPDX-License-Identifier: Apache-2.0
// The product that a call of matmul, matmul_relu or masked_matmul stands for
// (kernels/ops/matmul.cc).
#pragma once

#include "kernels/bound_kernel.h"
#include "kernels/gemm_problem.h"
#include "kernels/operands.h"

namespace syntra {

struct MatmulCall {
  GemmProblem problem;
  size_t b_parts = 1;  // how many matrices side by side form B: inputs 1, 2, ..

  static MatmulCall Of(const OpCall& call) {
    const TensorType &a = call.inputs[0], &b = call.inputs[1];
    MatmulCall result = WithTypes(call);
    GemmProblem& problem = result.problem;
    if (call.attributes.Flag("transpose_a")) {
      problem.transpose_a = true;
      problem.m = a.shape[-1];
      problem.k = a.shape.rows();
      problem.n = b.shape[-1];
      problem.b_stride = b.pitch;
      return result;
    }
    problem.transpose_b = call.attributes.Flag("transpose_b");
    problem.m = a.shape.rows();
    problem.k = a.shape[-1];
    problem.n = problem.transpose_b ? b.shape[-2] : b.shape[-1];
    return result;
  }

  // c = a [b_1 | b_2 | ..], or c = a [b_1 | b_2 | ..]^T.
  static MatmulCall OfParts(const OpCall& call, bool transpose_b) {
    MatmulCall result = WithTypes(call);
    result.b_parts = call.inputs.size() - 1;
    const int64_t columns = ColumnsSideBySide(std::span(call.inputs).subspan(1));
    const int64_t rows = call.inputs[1].shape[0];
    result.problem.transpose_b = transpose_b;
    result.problem.m = call.inputs[0].shape.rows();
    result.problem.n = transpose_b ? rows : columns;
    result.problem.k = transpose_b ? columns : rows;
    return result;
  }

  static MatmulCall OfRelu(const OpCall& call) {
    return WithEpilogue(call, call.outputs[1].present() ? Epilogue::kReluMask : Epilogue::kRelu);
  }

  static MatmulCall OfMasked(const OpCall& call) { return WithEpilogue(call, Epilogue::kMask); }

  // The type in which operands are multiplied.
  static DType TypeOf(const OpCall& call) {
    const bool bf16 = call.inputs[0].dtype == DType::kBF16 ||
                      call.inputs[1].dtype == DType::kBF16 || call.outputs[0].dtype == DType::kBF16;
    return bf16 ? DType::kBF16 : DType::kF32;
  }

  // The mask that the epilogue writes or applies; null if it has none.
  void* MaskIn(const KernelArguments& arguments) const {
    if (problem.epilogue == Epilogue::kReluMask) return arguments.outputs[1];
    return problem.epilogue == Epilogue::kMask ? arguments.inputs[2] : nullptr;
  }

 private:
  static MatmulCall WithEpilogue(const OpCall& call, Epilogue epilogue) {
    MatmulCall result = Of(call);
    result.problem.epilogue = epilogue;
    result.problem.accumulate = false;  // the caller adds, after the epilogue
    return result;
  }

  static MatmulCall WithTypes(const OpCall& call) {
    MatmulCall result;
    result.problem.ab = TypeOf(call);
    result.problem.c = call.outputs[0].dtype;
    result.problem.accumulate = Accumulates(call, 0);
    return result;
  }
};

}  // namespace syntra
