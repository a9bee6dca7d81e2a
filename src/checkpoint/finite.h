// SPDX-License-Identifier: Apache-2.0
// Finds values that are infinite or not a number. A state that holds such values is useless.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "checkpoint/tensor_record.h"

namespace syntra {

// How many values of the host tensor are infinite or not a number. Counts with all threads.
int64_t CountNotFinite(const TensorRecord& tensor);

// The tensors that hold such values, in the order given: "parameters/embedding (3 of 320 values),
// parameters/scale (8 of 8 values) and 49 other tensors". "" if none does.
std::string NotFinite(std::span<const TensorRecord> tensors);

// Throws Error(kCheckpoint), naming them, if tensors that were read from `path` hold such values.
void CheckFinite(const Path& path, std::span<const TensorRecord> tensors);

}  // namespace syntra
