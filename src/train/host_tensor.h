// SPDX-License-Identifier: Apache-2.0
// A rank's part of a checkpoint in the memory of its host.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "checkpoint/tensor_record.h"
#include "core/arena.h"
#include "plan/planned_model.h"

namespace syntra {

// The host's copy of a tensor of a checkpoint, as far as this rank holds it.
struct HostTensor : PlannedTensor {
  float* values = nullptr;  // of what is held, one after the other

  // Lets `read` fill a view of the whole tensor, and copies the held elements from it.
  void Fill(const std::function<void(TensorView)>& read) const;
};

// The planned tensors as they lie in the host's copy of `arena`, for which they are planned.
std::vector<HostTensor> HostTensorsIn(Arena& arena, std::vector<PlannedTensor> planned);

// Checkpoint records of the ranges that this rank holds.
std::vector<TensorRecord> RecordsOf(std::span<const HostTensor> tensors);

}  // namespace syntra
