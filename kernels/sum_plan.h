// SPDX-License-Identifier: Apache-2.0
// How sum_to goes through its operands, for all backends: y[k] = sum over r of x[k, r] factor[k,
// r].
#pragma once

#include "core/tensor.h"
#include "kernels/strides.h"

namespace syntra {

struct SumPlan {
  StridedLoop<3> kept;    // y, x and factor, over the axes that stay
  StridedLoop<2> summed;  // x and factor, over those that are summed
  bool along_rows;        // the innermost axis is summed

  static SumPlan Of(const TensorType& x, const TensorType& factor, const TensorType& y) {
    const Strides none{};
    const auto all = StridedLoop<3>::Over(
        x.shape, {BroadcastStrides(y.shape, x.shape), DenseStrides(x.shape),
                  factor.present() ? BroadcastStrides(factor.shape, x.shape) : none});
    SumPlan plan;
    plan.along_rows = y.shape.size() < x.shape.size() && all.inner_stride(0) == 0;
    plan.kept.rank = plan.summed.rank = 0;
    for (int i = 0; i < all.rank; ++i) {
      const Strides of_y{all.stride[0][i]}, of_x{all.stride[1][i]}, of_factor{all.stride[2][i]};
      if (all.stride[0][i] == 0) {
        plan.summed.Append(all.extent[i], 0, {of_x, of_factor});
      } else {
        plan.kept.Append(all.extent[i], 0, {of_y, of_x, of_factor});
      }
    }
    if (plan.kept.rank == 0) plan.kept.Append(1, 0, {});
    if (plan.summed.rank == 0) plan.summed.Append(1, 0, {});
    return plan;
  }

  int64_t results() const { return kept.size(); }
  int64_t terms() const { return summed.size(); }  // of each result
};

}  // namespace syntra
