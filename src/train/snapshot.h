// Checkpoints of a training run: what goes in, and how a run continues from one.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/read.h"
#include "config/config.h"
#include "train/replica.h"
#include "train/skipped_steps.h"

namespace syntra {

// What identifies a run besides its tensors; stored as attributes of each checkpoint.
struct RunIdentity {
  std::string run_id;
  Config config;
  std::string tokenizer_digest;
  std::string data_digest;        // of what the training corpus says
  std::string shards_digest;      // of its token shards: what data_digest was in early checkpoints
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

// The configuration that the checkpoint was made with, under overrides.
Config ConfigOf(const Checkpoint& checkpoint, std::span<const std::string> overrides = {},
                const ConfigPurpose& purpose = kForModel);

// Throws Error(kCheckpoint), with a field-by-field difference, if the run may not continue from the
// checkpoint: the model, the optimizer, the training data or the batch changed. Warns of another
// validation corpus, which changes no parameter but what log-perplexities are compared with.
void CheckContinues(const Checkpoint& checkpoint, const RunIdentity& identity);

// The newest valid checkpoint below `path`: a checkpoint, a run directory, or a directory of
// checkpoints. Throws Error(kCheckpoint) if there is none. Changes nothing.
Checkpoint OpenNewest(const Path& path);

}  // namespace syntra
