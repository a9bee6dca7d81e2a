// SPDX-License-Identifier: Apache-2.0
// joint_matmul and its gradient: one product for all matrices where the results lie side by side,
// and one for the gradient of a. Gradients of matrices are products of their own: their B is packed
// anyway, from wherever it is, and their results are far apart.
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/strided.h"
#include "kernels/joint_matmul_call.h"

namespace syntra {
namespace {

BoundKernel Bind(const std::vector<JointProduct>& products) {
  const auto copy = [](const KernelArguments&, const StridedCall& call, void* to,
                       const void* from) { RunStrided(call, to, from, nullptr); };
  return BindJointProducts(
      products,
      [](const OpCall& call, const MatmulCall& matmul) { return *BindMatmul(call, matmul); }, copy);
}

}  // namespace

std::optional<BoundKernel> cpu_joint_matmul(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  return Bind(ProductsOfJoint(call));
}

std::optional<BoundKernel> cpu_joint_matmul_grad(const OpCall& call) {
  if (!AreActivations(call)) return std::nullopt;
  std::vector<JointProduct> products;
  if (call.outputs[0].present()) products.push_back(ProductOfInput(call));
  for (size_t i = 1; i < call.outputs.size(); ++i) {
    if (call.outputs[i].present()) products.push_back(ProductOfMatrix(call, i - 1));
  }
  return Bind(products);
}

}  // namespace syntra
