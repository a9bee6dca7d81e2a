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

  // Writes what is held out of what `read` puts into a view of the whole tensor.
  void Fill(const std::function<void(TensorView)>& read) const;
};

// In the host's copy of the arena that they are planned for.
std::vector<HostTensor> HostTensorsIn(Arena& arena, std::vector<PlannedTensor> planned);

// Checkpoint records of the ranges that this rank holds.
std::vector<TensorRecord> RecordsOf(std::span<const HostTensor> tensors);

}  // namespace syntra
