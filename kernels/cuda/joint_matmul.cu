// SPDX-License-Identifier: Apache-2.0
// joint_matmul and its gradient: one product for the results, one for the gradient of a, and one
// for those of all matrices, where results and their gradients lie side by side. The matrices are
// put side by side in the workspace, which costs little: they have far fewer rows than a.
#include <optional>

#include "kernels/cuda/matmul.h"
#include "kernels/cuda/strided.h"
#include "kernels/joint_matmul_call.h"

namespace syntra {
namespace {

BoundKernel Bind(const std::vector<JointProduct>& products) {
  return BindJointProducts(products, gpu::BindMatmul, [](auto&&... copies) {
    gpu::RunCopies(std::forward<decltype(copies)>(copies)...);
  });
}

// [db_1 | db_2 | ..] = a^T [dc_1 | dc_2 | ..], from which each gradient is added where it belongs.
class MatrixGradients {
 public:
  // `whole`: a call of joint_matmul_grad whose gradients lie side by side.
  MatrixGradients(const OpCall& whole, WorkspaceLayout& layout)
      : first_gradient_(1 + JointMatrices(whole.inputs)) {
    const std::span gradients = std::span(whole.inputs).subspan(first_gradient_);
    const int64_t inner = whole.inputs[0].shape[-1];
    const TensorType sums{DType::kF32, {inner, SideBySide(gradients).shape[-1]}};
    const OpCall call{
        {{"transpose_a", true}, {"transpose_b", false}, {"dtype", std::string("f32")}},
        {whole.inputs[0], SideBySide(gradients)},
        {sums},
        {false}};
    product_ = gpu::BindMatmul(call, MatmulCall::Of(call));
    sums_ = layout.Place(sums.bytes());
    workspace_ = layout.Place(product_.workspace_bytes);
    int64_t column = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const TensorType& matrix = whole.outputs[1 + i];
      const int64_t width = gradients[i].shape[-1];
      if (matrix.present()) {
        StridedCall copy =
            StridedCall::Copy(matrix.shape, matrix.dtype, {width, 1}, {sums.shape[-1], 1});
        copy.a = DType::kF32;
        copy.a_offset = column;
        copy.accumulate = Accumulates(whole, 1 + i);
        copies_.push_back({copy, 1 + i});
      }
      column += width;
    }
  }

  void Run(const KernelArguments& arguments) const {
    void* operands[] = {arguments.inputs[0], arguments.inputs[first_gradient_]};
    void* sums = arguments.workspace + sums_;
    KernelArguments product = arguments;
    product.inputs = operands;
    product.outputs = {&sums, 1};
    product.workspace += workspace_;
    product_.run(product);
    std::vector<gpu::PlacedCopy> copies;
    for (const auto& [copy, output] : copies_) {
      copies.push_back({copy, arguments.outputs[output], sums});
    }
    gpu::RunCopies(arguments, copies);
  }

 private:
  struct Copy {
    StridedCall call;
    size_t output;
  };

  size_t first_gradient_;
  BoundKernel product_;
  size_t sums_, workspace_;
  std::vector<Copy> copies_;
};

}  // namespace

std::optional<BoundKernel> cuda_joint_matmul(const OpCall& call) {
  return Bind(ProductsOfJoint(call));
}

std::optional<BoundKernel> cuda_joint_matmul_grad(const OpCall& call) {
  const std::span matrices = std::span(call.outputs).subspan(1);
  const bool together = call.inputs.back().pitch > 0;
  std::vector<JointProduct> products;
  if (call.outputs[0].present()) products.push_back(ProductOfInput(call));
  for (size_t i = 0; i < matrices.size() && !together; ++i) {
    if (matrices[i].present()) products.push_back(ProductOfMatrix(call, i));
  }
  BoundKernel kernel = Bind(products);
  const auto present = [](const TensorType& type) { return type.present(); };
  if (!together || std::ranges::none_of(matrices, present)) return kernel;
  WorkspaceLayout layout;
  const MatrixGradients gradients(call, layout);
  kernel.workspace_bytes = std::max(kernel.workspace_bytes, layout.bytes());
  kernel.run = [first = std::move(kernel.run), gradients](const KernelArguments& arguments) {
    first(arguments);
    gradients.Run(arguments);
  };
  return kernel;
}

}  // namespace syntra
