// SPDX-License-Identifier: Apache-2.0
// The row of the output layer's matrix that computes the logit of a target.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace syntra {

// `first` is the id of row 0: 0 for tokens, 1 for classes, since id 0 is padding. -1: the slot has
// no target.
SYNTRA_HOST_DEVICE inline int32_t TargetRow(int32_t id, int32_t first) {
  return id <= 0 ? -1 : id - first;
}

}  // namespace syntra
