// SPDX-License-Identifier: Apache-2.0
// Class ids, which an architecture that predicts classes (model/architecture.h) learns instead of
// text.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "configs/schema/config.pb.h"
#include "tasks/task.h"

namespace syntra {

// The id of each task's first label; the others follow. Labels of the first task come first, from 1
// on. A diagnosis has the ids of the task that it belongs to. Empty if the model writes text.
// Throws Error(kConfig) if a task has no labels, or if model.classifier.classes is not the number
// of all labels.
std::vector<int32_t> FirstClassIds(const ModelConfig& model,
                                   std::span<const std::unique_ptr<Task>> tasks);

}  // namespace syntra
