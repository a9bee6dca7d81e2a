// SPDX-License-Identifier: Apache-2.0
// joint_matmul and its gradient: one product for all matrices if the results lie side by side, and
// one for the gradient of a. The gradients of the matrices do not lie side by side. If there is a
// kernel that computes all of them, a is packed once; otherwise each is a product of its own.
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/strided.h"
#include "kernels/joint_matmul_call.h"

namespace syntra {
namespace {

BoundKernel Bind(const std::vector<JointProduct>& products, PackedWeights* weights = nullptr) {
  return BindJointProducts(
      products,
      [weights](OpCall call, const MatmulCall& matmul) {
        call.packed_weights = weights;
        return BindMatmul(call, matmul);
      },
      [](const KernelArguments&, auto... copies) { RunCopies(copies...); });
}

}  // namespace

std::optional<BoundKernel> cpu_joint_matmul(const OpCall& call) {
  return Bind(ProductsOfJoint(call), call.packed_weights);
}

std::optional<BoundKernel> cpu_joint_matmul_grad(const OpCall& call) {
  std::vector<JointProduct> products;
  if (call.outputs[0].present()) products.push_back(ProductOfInput(call));
  const size_t matrices = JointMatrices(call.inputs);
  std::optional<BoundKernel> weights;
  if (call.outputs[1].present()) {
    weights =
        BindTransposed(call, ProductOfMatrix(call, 0).matmul.problem, 1 + matrices, /*first_c=*/1);
  }
  if (!weights) {
    for (size_t i = 0; i < matrices; ++i) {
      if (call.outputs[1 + i].present()) products.push_back(ProductOfMatrix(call, i));
    }
    return Bind(products);
  }
  BoundKernel kernel = Bind(products);
  kernel.workspace_bytes = std::max(kernel.workspace_bytes, weights->workspace_bytes);
  kernel.run = [of_a = std::move(kernel.run),
                of_weights = std::move(weights->run)](const KernelArguments& arguments) {
    of_a(arguments);
    of_weights(arguments);
  };
  return kernel;
}

}  // namespace syntra
