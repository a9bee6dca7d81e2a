// SPDX-License-Identifier: Apache-2.0
// The ranks that run one program together, as far as kernels and programs know of them. An op that
// exchanges values between ranks (Op::collective) has the attribute "ranks": how many they are.
// Every call is collective, and all ranks make the same calls in the same order.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace syntra {

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual int size() const = 0;
  // Sums all ranks' f32 values in place, with the same bits on all ranks and in every run.
  virtual void AllReduceSum(TensorView view) = 0;
  // Throws on all ranks unless all give the same list.
  virtual void CheckAlike(const std::vector<std::string>& collectives) = 0;
};

}  // namespace syntra
