// SPDX-License-Identifier: Apache-2.0
// How the examples of tasks are answered.
#pragma once

#include "configs/schema/config.pb.h"
#include "tasks/task.h"

namespace syntra {

// Whether examples of the task are answered with one of its labels, chosen by the model's
// probability of each, and not with decoded text.
bool RanksLabels(const Config& config, const Task& task);

}  // namespace syntra
