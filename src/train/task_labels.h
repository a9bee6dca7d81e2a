// SPDX-License-Identifier: Apache-2.0
// The labels of tasks as what a model gives: texts that it can write, or the ids of classes, which
// an architecture that predicts classes (model/architecture.h) learns instead.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "data/tokenizer.h"
#include "tasks/task.h"

namespace syntra {

// Throws Error(kConfig) if the tokenizer does not reproduce a label, or if a label is longer than a
// row of targets: no answer would ever be right. Labels that are only ranked need not be
// reproduced, but must differ in their tokens. A benchmark's labels cannot be chosen, so for these
// it returns what is wrong, one text each.
std::vector<std::string> CheckTaskLabels(const Config& config, const Tokenizer& tokenizer,
                                         std::span<const std::unique_ptr<Task>> tasks);

// The id of each task's first label; the others follow. Labels of the first task come first, from 1
// on. A diagnostic has the ids of the task that it belongs to. Empty if the model writes text.
// Throws Error(kConfig) if a task has no labels, or if model.classifier.classes is not the number
// of all labels.
std::vector<int32_t> FirstClassIds(const ModelConfig& model,
                                   std::span<const std::unique_ptr<Task>> tasks);

}  // namespace syntra
