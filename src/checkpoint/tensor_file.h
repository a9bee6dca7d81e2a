// SPDX-License-Identifier: Apache-2.0
// A single HDF5 file of tensors, from any source, read as if it were a checkpoint.
#pragma once

#include "checkpoint/read.h"

namespace syntra {

// A checkpoint without run, step (0) and attributes, whose tensors are the datasets of the file:
// contiguous, little-endian, of f32, f64 or i32, or of u16 with an attribute dtype = "bf16". Throws
// Error(kCheckpoint) if it is not an HDF5 file or holds no such dataset, saying why.
Checkpoint OpenTensorFile(const Path& path);

}  // namespace syntra
