// SPDX-License-Identifier: Apache-2.0
// Refuses batches and models that are too large for any machine, so that all sizes fit into 64
// bits.
#pragma once

#include "base/field_report.h"
#include "configs/schema/config.pb.h"

namespace syntra {

// Reports a batch or activations of more elements than any machine can hold.
void CheckSizes(const Config& config, const FieldReport& report);

}  // namespace syntra
