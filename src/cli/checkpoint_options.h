// SPDX-License-Identifier: Apache-2.0
// --checkpoint and --set, the same for every command that uses a trained model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/command.h"
#include "config/config.h"
#include "data/tokenizer.h"
#include "train/evaluation_replica.h"

namespace syntra {

class Checkpoint;
class Communicator;
class ValidationData;
class Watchdog;
struct TaskData;

struct LoadedModel {
  Path path;  // of the checkpoint
  int64_t step = 0;
  Config config;
  Path prepared;                       // where the token shards of its data go; empty: nowhere
  std::optional<Tokenizer> tokenizer;  // empty if the purpose needs none
  std::shared_ptr<Backend> backend;
  std::unique_ptr<EvaluationReplica> replica;
};

struct CheckpointOptions {
  std::string checkpoint;
  std::vector<std::string> overrides;

  // The newest valid checkpoint at or below the path. Its configuration is the stored one with the
  // overrides. Its stored train.directory and data.prepared do not count, so that a checkpoint from
  // elsewhere does not choose where files are written: without overrides train.directory is the run
  // directory that the checkpoint lies in, empty if it lies in none. Collective, unless `ranks` is
  // null: one process alone.
  LoadedModel Load(const ConfigPurpose& purpose, Communicator* ranks = nullptr) const;
  // Collective: the same on every rank, or an Error that says what differs. Sets the threads.
  LoadedModel LoadOnRanks(const ConfigPurpose& purpose, Communicator& ranks,
                          Watchdog& watchdog) const;
};

// OpenNewest for a command that reads no other format: of a model in one, the error names
// `convert`.
Checkpoint OpenCheckpoint(const Path& path);

// Throws Error(kConfig) if the configuration names no validation data.
void RequireValidation(const DataConfig& data);

// Collective. The validation split of the model's configuration, prepared with its tokenizer if it
// is not yet. Throws Error(kConfig) if there is no validation data or no place for its token
// shards, Error(kData) if the ranks' data differ.
ValidationData OpenValidationData(const LoadedModel& model, Communicator& ranks,
                                  Watchdog& watchdog);

// Collective. The validation splits of the model's tasks. Throws Error(kConfig) or Error(kData) if
// they cannot be used, Error(kData) if the ranks' files differ.
std::vector<TaskData> OpenTasks(const LoadedModel& model, Communicator& ranks, Watchdog& watchdog);

std::shared_ptr<CheckpointOptions> AddCheckpointOptions(CLI::App& app);

}  // namespace syntra
