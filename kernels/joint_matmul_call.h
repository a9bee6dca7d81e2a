// SPDX-License-Identifier: Apache-2.0
// The products that a call of joint_matmul or of its gradient consists of
// (kernels/ops/joint_matmul.cc), for all backends.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/joined_matrix.h"
#include "kernels/matmul_call.h"

namespace syntra {

// The number of matrices of a call of joint_matmul_grad with these inputs: a, b_i, dc_i.
inline size_t JointMatrices(std::span<const TensorType> inputs) {
  SYNTRA_CHECK(inputs.size() > 2 && inputs.size() % 2 == 1 && inputs.size() <= 1 + 2 * kMostJoined,
               "joint_matmul_grad of {} operands", inputs.size());
  return (inputs.size() - 1) / 2;
}

// The type of the matrix whose columns these are.
inline TensorType SideBySide(std::span<const TensorType> types) {
  return {types[0].dtype, {types[0].shape.rows(), ColumnsSideBySide(types)}};
}

// One product of the call: a call of matmul, whose B may have several parts, and the inputs and the
// output of the whole call that are its operands. If `joined` > 0, its A is made of the last
// `joined` of `inputs`, which are not side by side in memory.
struct JointProduct {
  MatmulCall matmul;
  OpCall call;
  std::vector<size_t> inputs;
  size_t output;
  size_t joined = 0;
};

// c = a [b_1 | b_2 | ..] where the results lie side by side, else c_i = a b_i.
inline std::vector<JointProduct> ProductsOfJoint(const OpCall& whole) {
  std::vector<JointProduct> products;
  if (whole.outputs[0].pitch > 0) {
    OpCall call{{}, whole.inputs, {SideBySide(whole.outputs)}, {Accumulates(whole, 0)}};
    JointProduct& product = products.emplace_back(
        JointProduct{MatmulCall::OfParts(call, /*transpose_b=*/false), call, {}, 0});
    for (size_t i = 0; i < whole.inputs.size(); ++i) product.inputs.push_back(i);
    return products;
  }
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    if (!whole.outputs[i].present()) continue;
    OpCall call{whole.attributes,
                {whole.inputs[0], whole.inputs[1 + i]},
                {whole.outputs[i]},
                {Accumulates(whole, i)}};
    products.push_back({MatmulCall::Of(call), call, {0, 1 + i}, i});
  }
  return products;
}

// da = [dc_1 | dc_2 | ..] [b_1 | b_2 | ..]^T, of the gradients that are present.
inline JointProduct ProductOfInput(const OpCall& whole) {
  const size_t matrices = JointMatrices(whole.inputs);
  std::vector<TensorType> gradients;
  JointProduct product{.call = {{}, {}, {whole.outputs[0]}, {Accumulates(whole, 0)}},
                       .inputs = {1 + matrices},
                       .output = 0};
  product.call.inputs.emplace_back();
  std::vector<size_t> places;
  for (size_t i = 0; i < matrices; ++i) {
    const TensorType& gradient = whole.inputs[1 + matrices + i];
    if (!gradient.present()) continue;
    gradients.push_back(gradient);
    places.push_back(1 + matrices + i);
    product.call.inputs.push_back(whole.inputs[1 + i]);
    product.inputs.push_back(1 + i);
  }
  product.call.inputs[0] = SideBySide(gradients);
  product.matmul = MatmulCall::OfParts(product.call, /*transpose_b=*/true);
  if (gradients[0].pitch > 0) return product;
  product.joined = gradients.size();
  product.inputs.insert(product.inputs.end(), places.begin(), places.end());
  product.call.inputs.insert(product.call.inputs.end(), gradients.begin(), gradients.end());
  return product;
}

// db_i = a^T dc_i.
inline JointProduct ProductOfMatrix(const OpCall& whole, size_t i) {
  const size_t gradient = 1 + JointMatrices(whole.inputs) + i;
  OpCall call{{{"transpose_a", true}, {"transpose_b", false}, {"dtype", std::string("f32")}},
              {whole.inputs[0], whole.inputs[gradient]},
              {whole.outputs[1 + i]},
              {Accumulates(whole, 1 + i)}};
  return {MatmulCall::Of(call), call, {0, gradient}, 1 + i};
}

// A kernel that computes the products one after the other. `bind` binds a call of matmul;
// run(arguments, copies, to, from) joins matrices (JoinedMatrix::Join).
template <typename Bind, typename Run>
BoundKernel BindJointProducts(const std::vector<JointProduct>& products, const Bind& bind,
                              const Run& run) {
  struct Part {
    JointProduct product;
    JoinedMatrix joined;
    BoundKernel kernel;
    size_t workspace;  // of `kernel`

    void Compute(const KernelArguments& arguments, const Run& run) const {
      std::array<void*, 1 + 2 * kMostJoined> inputs;
      const size_t count = product.inputs.size(), multiplied = count - product.joined;
      for (size_t i = 0; i < count; ++i) inputs[i] = arguments.inputs[product.inputs[i]];
      KernelArguments own = arguments;
      own.inputs = std::span(inputs).first(count);
      own.outputs = arguments.outputs.subspan(product.output, 1);
      if (product.joined > 0) {
        inputs[0] = joined.Join(own, multiplied, [&](auto&&... copy) { run(own, copy...); });
      }
      own.inputs = own.inputs.first(multiplied);
      own.workspace += workspace;
      kernel.run(own);
    }
  };
  BoundKernel all;
  all.accumulates = true;
  std::vector<Part> parts;
  for (const JointProduct& product : products) {
    WorkspaceLayout layout;
    Part& part = parts.emplace_back(Part{product, {}, {}, 0});
    std::vector<TensorType>& inputs = part.product.call.inputs;
    const std::span gradients = std::span(inputs).last(product.joined);
    if (product.joined > 0) {
      part.joined = JoinedMatrix(gradients, product.matmul.problem.ab, layout);
      inputs[0].dtype = product.matmul.problem.ab;
    }
    inputs.resize(inputs.size() - product.joined);
    part.kernel = bind(part.product.call, product.matmul);
    part.workspace = layout.Place(part.kernel.workspace_bytes);
    all.workspace_bytes = std::max(all.workspace_bytes, layout.bytes());
  }
  all.run = [parts = std::move(parts), run](const KernelArguments& arguments) {
    for (const Part& part : parts) part.Compute(arguments, run);
  };
  return all;
}

}  // namespace syntra
