// SPDX-License-Identifier: Apache-2.0
// Batches and models whose sizes could not be counted.
#pragma once

#include "base/field_report.h"
#include "configs/schema/config.pb.h"

namespace syntra {

// Reports a batch or activations of more elements than any machine can hold.
void CheckSizes(const Config& config, const FieldReport& report);

}  // namespace syntra
