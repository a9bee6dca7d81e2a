// SPDX-License-Identifier: Apache-2.0
// What a configuration has one rank do in a step, for predictions (train/scaling.h). Nothing is
// allocated, and no device is needed.
#pragma once

#include "configs/schema/config.pb.h"
#include "train/scaling.h"
#include "train/sizes.h"

namespace syntra {

// Of the rank with most, out of `ranks` that compute on GPUs or not; `sizes` are RunSizesOf the
// same configuration and ranks. Throws Error(kConfig) if the ranks cannot share the batch.
StepWork StepWorkOf(const Config& config, int ranks, bool on_gpus, const RunSizes& sizes);

}  // namespace syntra
