// SPDX-License-Identifier: Apache-2.0
// The configuration of a finetuning run: files and --set over the model that it starts from.
#pragma once

#include <string>

#include "cli/config_options.h"

namespace syntra {

// Whether files and --set name tasks: then they are for `finetune`, else for `pretrain`.
bool NamesTasks(const ConfigOptions& options);

// `initial` counts as checkpoint.initial, if it is not empty. The model is that of the run's newest
// checkpoint, or of checkpoint.initial. Throws Error(kConfig) if there is none and the files
// describe none either.
Config LoadForFinetuning(const ConfigOptions& options, const std::string& initial = "");

}  // namespace syntra
