// SPDX-License-Identifier: Apache-2.0
// Loads the configurations of runs: of pretraining from files and --set, of finetuning also from
// the model that the run starts from.
#pragma once

#include <memory>
#include <string>

#include "cli/config_options.h"
#include "cli/training.h"

namespace syntra {

// Whether files and --set name tasks: then they are for `finetune`, else for `pretrain`.
bool NamesTasks(const ConfigOptions& options);

// Where the model comes from.
struct StartOptions {
  std::string initial;        // counts as checkpoint.initial, if it is not empty
  bool from_scratch = false;  // from initialisation, with the sizes that the files give
  // For commands that only look at a run: it may lack a start, and then counts as starting from
  // initialisation.
  bool may_lack = false;
};

// Adds --init-from.
CLI::Option* AddInitFrom(CLI::App& app, StartOptions* start);
// Adds --init-from and --from-scratch, which exclude each other.
void AddStartOptions(CLI::App& app, StartOptions* start);

// For commands that train several runs in train.directory: these have their start in common, kept
// there, unless the options say where it is kept.
void ShareStart(ConfigOptions* options, const StartOptions& start = {});

// The configuration of a run on corpora. Throws Error(kConfig) if it names tasks.
Config LoadForPretraining(const ConfigOptions& options, const StartOptions& start = {});

// The model is that of the run's newest checkpoint or, where there is none, of checkpoint.initial,
// which is opened for that. Throws Error(kConfig) if there is none of either and `start` does not
// allow that, or if options and fields name different starts. Collective, unless `ranks` is null:
// one process alone.
LoadedRun LoadForFinetuning(const ConfigOptions& options, const StartOptions& start = {},
                            const ConfigPurpose& purpose = kForFinetuning,
                            Communicator* ranks = nullptr);

// The configuration of a run of either kind. Throws Error(kConfig) if there are no tasks, but
// --from-scratch is given: that is what corpora are trained from anyway.
LoadedRun LoadForTraining(const ConfigOptions& options, const StartOptions& start);

// For commands that need only the model: files, --set and --init-from.
struct ModelOptions {
  std::shared_ptr<ConfigOptions> config;
  StartOptions start{.may_lack = true};
};
std::shared_ptr<ModelOptions> AddModelOptions(CLI::App& app);

// With tasks, the model's sizes come from what it starts from, if that is named.
Config LoadForModel(const ModelOptions& options);

}  // namespace syntra
