// SPDX-License-Identifier: Apache-2.0
#include "cli/run_config.h"

#include <CLI/CLI.hpp>

#include "config/print.h"
#include "data/example.h"
#include "model/architecture.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

constexpr const char* kNoStart =
    "no model to start from: use --init-from with a run, a checkpoint or a Hugging Face directory. "
    "To train from scratch, use --from-scratch and describe the model in the configuration";

// Files and --set, with the start that an option names.
Config ReadWithStart(const ConfigOptions& options, const StartOptions& start) {
  Config given = ReadUnchecked(options.Files(), options.overrides);
  std::string& initial = *given.mutable_checkpoint()->mutable_initial();
  if (start.from_scratch && !initial.empty()) {
    Fail(ExitCode::kConfig,
         "--from-scratch starts from no model, but checkpoint.initial names {}; leave one of them "
         "out",
         initial);
  }
  if (!start.initial.empty() && !initial.empty() && initial != start.initial) {
    Fail(ExitCode::kConfig,
         "--init-from names {}, but checkpoint.initial {}; leave one of them out", start.initial,
         initial);
  }
  if (initial.empty()) initial = start.initial;
  return given;
}

// The configuration that the run takes from the model that it continues with or starts from.
Config TakenFrom(const Config& trained, const Config& given) {
  Config below;
  *below.mutable_model() = trained.model();
  // Parts that the new architecture does not have are dropped, such as the decoder of an
  // encoder-decoder.
  if (given.model().has_architecture()) {
    below.mutable_model()->set_architecture(given.model().architecture());
    ClearForeignFields(below.mutable_model());
  }
  below.mutable_data()->set_extra_ids(trained.data().extra_ids());
  return below;
}

// As an override below all others.
std::string InitialOverride(const Config& given) {
  Config from;
  from.mutable_checkpoint()->set_initial(given.checkpoint().initial());
  return MinimalConfigText(from);
}

Config LoadOnCorpora(const ConfigOptions& options, const StartOptions& start,
                     const ConfigPurpose& purpose) {
  ConfigOptions all = options;
  if (!start.initial.empty()) {
    CheckReadable(options.Files(), options.overrides);
    all.overrides.insert(all.overrides.begin(), InitialOverride(ReadWithStart(options, start)));
  }
  return all.Load(purpose);
}

}  // namespace

bool NamesTasks(const ConfigOptions& options) {
  return HasTasks(ReadUnchecked(options.Files(), options.overrides).data());
}

void ShareStart(ConfigOptions* options, const StartOptions& start) {
  const Config given = ReadUnchecked(options->Files(), options->overrides);
  const RunDirectory directory{given.train().directory()};
  const bool has_start = !given.checkpoint().initial().empty() || !start.initial.empty();
  if (!has_start || directory.root.empty() || !given.checkpoint().initial_kept_in().empty()) {
    return;
  }
  Config shared;
  shared.mutable_checkpoint()->set_initial_kept_in(directory.start().string());
  options->overrides.push_back(MinimalConfigText(shared));
}

Config LoadForPretraining(const ConfigOptions& options, const StartOptions& start) {
  if (NamesTasks(options)) {
    Fail(ExitCode::kConfig,
         "data.task names tasks, which this command does not learn: run syntra finetune, or leave "
         "data.task out");
  }
  return LoadOnCorpora(options, start, kForTraining);
}

CLI::Option* AddInitFrom(CLI::App& app, StartOptions* start) {
  return app
      .add_option("--init-from", start->initial,
                  "Start from the model of this run, checkpoint or Hugging Face directory; the "
                  "same as --set checkpoint.initial=DIR")
      ->type_name("DIR");
}

void AddStartOptions(CLI::App& app, StartOptions* start) {
  app.add_flag("--from-scratch", start->from_scratch,
               "For tasks: start from an untrained model, as a baseline; the configuration gives "
               "the model's sizes")
      ->excludes(AddInitFrom(app, start));
}

LoadedRun LoadForFinetuning(const ConfigOptions& options, const StartOptions& start,
                            const ConfigPurpose& purpose, Communicator* ranks) {
  const std::vector<std::string> files = options.Files();
  std::vector<std::string> overrides = options.overrides;
  // Told before a model is looked for and read.
  CheckReadable(files, overrides);
  if (purpose.run) options.RequireOwnDirectory();
  const Config given = ReadWithStart(options, start);
  if (!start.initial.empty()) overrides.insert(overrides.begin(), InitialOverride(given));
  std::optional<InitialModel> initial;
  if (!ranks || ranks->rank() == 0) initial = InitialOf(given);
  if (ranks) initial = InitialOnAllRanks(std::move(initial), given, *ranks);
  const std::optional<Config> trained = ConfigOfStart(given, initial);
  if (!trained && !start.from_scratch && !start.may_lack) Fail(ExitCode::kConfig, "{}", kNoStart);
  if (start.from_scratch && trained && !trained->checkpoint().initial().empty()) {
    Fail(ExitCode::kConfig,
         "the run in {} started from {} and would go on with that; set another train.directory to "
         "train from scratch",
         given.train().directory(), trained->checkpoint().initial());
  }
  const std::string source = initial ? "the model of " + initial->source
                                     : "the model of the run in " + given.train().directory();
  const Config below = trained ? TakenFrom(*trained, given) : Config();
  LoadedRun run{LoadConfigOver({source, MinimalConfigText(below)}, files, overrides, purpose),
                std::move(initial)};
  if (!trained && !start.from_scratch) run.lacks = kNoStart;
  return run;
}

LoadedRun LoadForTraining(const ConfigOptions& options, const StartOptions& start) {
  if (NamesTasks(options)) return LoadForFinetuning(options, start);
  if (start.from_scratch) {
    Fail(ExitCode::kConfig, "--from-scratch is for tasks, and the configuration names none");
  }
  return {LoadForPretraining(options, start), std::nullopt};
}

std::shared_ptr<ModelOptions> AddModelOptions(CLI::App& app) {
  auto options = std::make_shared<ModelOptions>();
  options->config = AddConfigOptions(app);
  AddInitFrom(app, &options->start);
  return options;
}

Config LoadForModel(const ModelOptions& options) {
  if (!NamesTasks(*options.config)) return LoadOnCorpora(*options.config, options.start, kForModel);
  return LoadForFinetuning(*options.config, options.start, kForModel).config;
}

}  // namespace syntra
