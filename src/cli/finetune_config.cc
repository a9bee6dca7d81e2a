// SPDX-License-Identifier: Apache-2.0
#include "cli/finetune_config.h"

#include "config/print.h"
#include "train/initial.h"

namespace syntra {

bool NamesTasks(const ConfigOptions& options) {
  return ReadUnchecked(options.Files(), options.overrides).data().task_size() > 0;
}

Config LoadForFinetuning(const ConfigOptions& options, const std::string& initial) {
  const std::vector<std::string> files = options.Files();
  std::vector<std::string> overrides = options.overrides;
  if (!initial.empty()) {
    Config from;
    from.mutable_checkpoint()->set_initial(initial);
    overrides.insert(overrides.begin(), MinimalConfigText(from));
  }
  const Config given = ReadUnchecked(files, overrides);
  const std::optional<Config> start = ConfigOfStart(given);
  if (!start && !given.has_model()) {
    Fail(ExitCode::kConfig,
         "no model: give --init-from a run, a checkpoint or a Hugging Face directory. A run from "
         "scratch needs a model in its configuration");
  }
  Config below;
  if (start) {
    *below.mutable_model() = start->model();
    below.mutable_data()->set_extra_ids(start->data().extra_ids());
  }
  return LoadConfigOver({"the model that the run starts from", MinimalConfigText(below)}, files,
                        overrides, kForFinetuning);
}

}  // namespace syntra
