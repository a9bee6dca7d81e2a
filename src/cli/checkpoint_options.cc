#include "cli/checkpoint_options.h"

#include <CLI/CLI.hpp>

#include "cli/backend.h"
#include "data/training_data.h"
#include "train/run_directory.h"
#include "train/snapshot.h"

namespace syntra {
namespace {

// Relative to the working directory of the run, data.prepared may lead nowhere in this one. Then,
// as where it is not set, the shards are those of the run that the checkpoint lies in.
Path PreparedFor(const Checkpoint& checkpoint, const Config& config) {
  const std::string& prepared = config.data().prepared();
  const bool is_own = prepared == ConfigOf(checkpoint).data().prepared();
  if (!prepared.empty() && (!is_own || std::filesystem::is_directory(prepared))) return prepared;
  const Path root = std::filesystem::absolute(checkpoint.path()).lexically_normal().parent_path();
  if (root.filename() != RunDirectory{}.checkpoints()) return {};
  return RunDirectory{root.parent_path()}.Prepared(DataConfig());
}

}  // namespace

LoadedModel CheckpointOptions::Load(const ConfigPurpose& purpose, const Communicator* ranks) const {
  Checkpoint opened = OpenNewest(checkpoint);
  LoadedModel loaded{.path = opened.path(),
                     .step = opened.info().step,
                     .config = ConfigOf(opened, overrides, purpose)};
  loaded.prepared = PreparedFor(opened, loaded.config);
  if (purpose.tokenizer) loaded.tokenizer.emplace(TokenizerOf(opened, loaded.config));
  const TrainConfig& train = loaded.config.train();
  loaded.backend = ChooseBackend(train.device(), ranks);
  loaded.replica = std::make_unique<Replica>(loaded.config.model(), nullptr,
                                             ActivationType(train.precision()), *loaded.backend);
  LoadParameters(opened, *loaded.replica);
  return loaded;
}

ValidationData OpenValidationData(const LoadedModel& model) {
  const DataConfig& data = model.config.data();
  if (data.validation_size() == 0) {
    Fail(ExitCode::kConfig, "no data.validation; give --set data.validation=PATTERN");
  }
  if (model.prepared.empty()) {
    Fail(ExitCode::kConfig,
         "{} lies in no run directory, so there is no place for the token shards of the validation "
         "data; give --set data.prepared=DIRECTORY",
         model.path.string());
  }
  PrepareCorpus(ValidationPreparation(data, model.prepared), *model.tokenizer);
  return ValidationData::Open(data, *model.tokenizer, model.prepared);
}

std::shared_ptr<CheckpointOptions> AddCheckpointOptions(CLI::App& app) {
  auto options = std::make_shared<CheckpointOptions>();
  app.add_option("--checkpoint", options->checkpoint,
                 "Checkpoint, or a directory with some: the newest valid one is used")
      ->required()
      ->type_name("DIR");
  app.add_option("--set", options->overrides, "Change one field of the checkpoint's configuration")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);
  return options;
}

}  // namespace syntra
