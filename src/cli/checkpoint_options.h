// --checkpoint and --set, the same for every command that uses a trained model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "config/config.h"
#include "train/replica.h"

namespace syntra {

struct LoadedModel {
  Path path;  // of the checkpoint
  int64_t step = 0;
  Config config;
  std::unique_ptr<Replica> replica;  // parameters only
};

struct CheckpointOptions {
  std::string checkpoint;
  std::vector<std::string> overrides;

  // The newest valid checkpoint at or below the path, with its own configuration under the
  // overrides.
  LoadedModel Load(const ConfigPurpose& purpose) const;
};

std::shared_ptr<CheckpointOptions> AddCheckpointOptions(CLI::App& app);

}  // namespace syntra
