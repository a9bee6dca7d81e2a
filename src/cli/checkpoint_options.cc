#include "cli/checkpoint_options.h"

#include <CLI/CLI.hpp>

#include "cli/backend.h"
#include "train/snapshot.h"

namespace syntra {

LoadedModel CheckpointOptions::Load(const ConfigPurpose& purpose, const Communicator* ranks) const {
  Checkpoint opened = OpenNewest(checkpoint);
  LoadedModel loaded{.path = opened.path(),
                     .step = opened.info().step,
                     .config = ConfigOf(opened, overrides, purpose),
                     .backend = nullptr,
                     .replica = nullptr};
  const TrainConfig& train = loaded.config.train();
  loaded.backend = ChooseBackend(train.device(), ranks);
  loaded.replica = std::make_unique<Replica>(loaded.config.model(), nullptr,
                                             ActivationType(train.precision()), *loaded.backend);
  LoadParameters(opened, *loaded.replica);
  return loaded;
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
