// Checkpoints of a training run: what goes in, and how a run continues from one.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/read.h"
#include "config/config.h"
#include "train/replica.h"
#include "train/skipped_steps.h"

namespace syntra {

// Attributes of a checkpoint.
inline constexpr char kTokenizerAttribute[] = "tokenizer_digest";
inline constexpr char kDataAttribute[] = "data_digest";
inline constexpr char kShardsAttribute[] = "shards_digest";
inline constexpr char kValidationAttribute[] = "validation_digest";

// What identifies a run besides its tensors; stored as attributes of each checkpoint.
struct RunIdentity {
  std::string run_id;
  Config config;
  std::string tokenizer_digest;
  std::string data_digest;    // of what the training corpus says
  std::string shards_digest;  // of its token shards, which early checkpoints have as data_digest
  std::string validation_digest;  // of what the validation corpus says; empty: there is none
  int world_size = 1;
};

// Saves the replica's parameters and optimizer state as the state before training step `step`.
void SaveSnapshot(const Path& root, const RunIdentity& identity, int64_t step,
                  const SkippedSteps& skipped, Replica& replica, const CheckpointConfig& options);

// Reads every tensor of the replica, and the skipped steps. Throws Error(kCheckpoint) if names or
// shapes differ.
void LoadSnapshot(Checkpoint& checkpoint, Replica& replica, SkippedSteps* skipped);

// Parameters only, e.g. to evaluate or to start another run from.
void LoadParameters(Checkpoint& checkpoint, Replica& replica);

// Throws Error(kCheckpoint) if the checkpoint, which is at `path`, has no such attribute.
const std::string& AttributeOf(const Path& path, const CheckpointInfo& info, const char* name);

// The configuration that the checkpoint was made with, under overrides.
Config ConfigOf(const Path& path, const CheckpointInfo& info,
                std::span<const std::string> overrides = {},
                const ConfigPurpose& purpose = kForModel);
Config ConfigOf(const Checkpoint& checkpoint, std::span<const std::string> overrides = {},
                const ConfigPurpose& purpose = kForModel);

// The newest valid checkpoint below `path`: a checkpoint, a run directory, or a directory of
// checkpoints. Throws Error(kCheckpoint) if there is none. Changes nothing.
Checkpoint OpenNewest(const Path& path);

}  // namespace syntra
