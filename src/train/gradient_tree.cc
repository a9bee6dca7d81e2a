// SPDX-License-Identifier: Apache-2.0
#include "train/gradient_tree.h"

#include <bit>

#include "dist/tree_sum.h"
#include "kernels/op.h"

namespace syntra {

GradientTree::GradientTree(int64_t leaves, int64_t elements, Backend& backend)
    : device_(backend.device()), leaves_(leaves) {
  for (int level = 0; level < TreeLevels(leaves); ++level) {
    levels_.push_back(device_.Allocate(elements * sizeof(float), "sums of gradients"));
  }
  const TensorType type{DType::kF32, {elements}};
  const auto bind = [&](bool accumulate) {
    const OpCall call{{{"dtype", std::string("f32")}}, {type}, {type}, {accumulate}};
    return backend.Bind(GetOp("copy"), call).value();
  };
  copy_ = bind(false);
  add_ = bind(true);
}

void GradientTree::Run(const BoundKernel& kernel, void* from, void* to) {
  kernel.run({{&from, 1}, {&to, 1}, nullptr, device_.stream()});
}

void GradientTree::Add(TensorView gradients) {
  const uint64_t kept = added_;
  const bool last = ++added_ == leaves_;
  if (last) added_ = 0;
  // The subtrees that end here: of equal size, but at the last leaf all that are left.
  const int level = last ? std::bit_width(kept) : std::countr_one(kept);
  for (int below = 0; below < level; ++below) {
    if (kept >> below & 1) Run(add_, levels_[below].data(), gradients.data);
  }
  if (!last) Run(copy_, gradients.data, levels_[level].data());
}

}  // namespace syntra
