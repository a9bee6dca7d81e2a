// SPDX-License-Identifier: Apache-2.0
#include "cli/run_config.h"

#include "config/print.h"
#include "model/architecture.h"

namespace syntra {

bool NamesTasks(const ConfigOptions& options) {
  return ReadUnchecked(options.Files(), options.overrides).data().task_size() > 0;
}

Config LoadForPretraining(const ConfigOptions& options) {
  if (NamesTasks(options)) {
    Fail(ExitCode::kConfig,
         "data.task names tasks, which this command does not learn: run syntra finetune, or leave "
         "data.task out");
  }
  return options.Load(kForTraining);
}

LoadedRun LoadForFinetuning(const ConfigOptions& options, const StartOptions& start) {
  const std::vector<std::string> files = options.Files();
  std::vector<std::string> overrides = options.overrides;
  if (!start.initial.empty()) {
    Config from;
    from.mutable_checkpoint()->set_initial(start.initial);
    overrides.insert(overrides.begin(), MinimalConfigText(from));
  }
  const Config given = ReadUnchecked(files, overrides);
  std::optional<InitialModel> initial = InitialOf(given);
  const std::optional<Config> trained = ConfigOfStart(given, initial);
  if (!trained && !start.from_scratch) {
    Fail(
        ExitCode::kConfig,
        "no model to start from: give --init-from a run, a checkpoint or a Hugging Face directory. "
        "To train from scratch, give --from-scratch and describe the model in the configuration");
  }
  Config below;
  if (trained) {
    *below.mutable_model() = trained->model();
    // What another architecture does not have stays behind: of an encoder-decoder the decoder.
    if (given.model().has_architecture()) {
      below.mutable_model()->set_architecture(given.model().architecture());
      ClearForeignFields(below.mutable_model());
    }
    below.mutable_data()->set_extra_ids(trained->data().extra_ids());
  }
  return {LoadConfigOver({"the model that the run starts from", MinimalConfigText(below)}, files,
                         overrides, kForFinetuning),
          std::move(initial)};
}

}  // namespace syntra
