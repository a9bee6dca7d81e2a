#include "cli/checkpoint_options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/backend.h"
#include "train/snapshot.h"

namespace syntra {
namespace {

// Above "checkpoints", where a run has them; else what holds the checkpoint.
Path RunDirectoryOf(const Path& checkpoint) {
  const Path holder = (std::filesystem::absolute(checkpoint) / "").parent_path().parent_path();
  return holder.filename() == "checkpoints" ? holder.parent_path() : holder;
}

// A checkpoint may come from anybody, so what it says of places that are written to does not count:
// token shards go to its run directory, or where the command line says.
std::vector<std::string> WithOwnPlaces(const Path& checkpoint,
                                       const std::vector<std::string>& overrides) {
  std::vector<std::string> all{"train.directory=" + RunDirectoryOf(checkpoint).string(),
                               "data.prepared="};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

}  // namespace

LoadedModel CheckpointOptions::Load(const ConfigPurpose& purpose, const Communicator* ranks) const {
  Checkpoint opened = OpenNewest(checkpoint);
  LoadedModel loaded{.path = opened.path(),
                     .step = opened.info().step,
                     .config = ConfigOf(opened, WithOwnPlaces(opened.path(), overrides), purpose),
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
