// SPDX-License-Identifier: Apache-2.0
// Whether a model that writes text can write the labels of its tasks.
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

}  // namespace syntra
