// --checkpoint and --set, the same for every command that uses a trained model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "config/config.h"
#include "dist/communicator.h"
#include "train/replica.h"

namespace syntra {

struct LoadedModel {
  Path path;  // of the checkpoint
  int64_t step = 0;
  Config config;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Replica> replica;  // parameters only
};

struct CheckpointOptions {
  std::string checkpoint;
  std::vector<std::string> overrides;

  // The newest valid checkpoint at or below the path, with its own configuration under the
  // overrides, but for train.directory and data.prepared: without an override these are its run
  // directory and the place in there, so that a checkpoint from elsewhere chooses nothing that is
  // written.
  // `ranks` may be null: one process alone.
  LoadedModel Load(const ConfigPurpose& purpose, const Communicator* ranks = nullptr) const;
};

std::shared_ptr<CheckpointOptions> AddCheckpointOptions(CLI::App& app);

}  // namespace syntra
