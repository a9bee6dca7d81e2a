// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training run: what goes in, and how a run continues from one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "checkpoint/save.h"
#include "config/config.h"
#include "data/tokenizer.h"

namespace syntra {

class Checkpoint;
class EvaluationReplica;
class Replica;
class RunLock;

// Attributes of a checkpoint, besides those of checkpoint/layout.h.
inline constexpr char kDataAttribute[] = "data_digest";
inline constexpr char kTaskDigestsAttribute[] = "task_digests";
inline constexpr char kShardsAttribute[] = "shards_digest";
inline constexpr char kValidationAttribute[] = "validation_digest";
inline constexpr char kTaskValidationAttribute[] = "task_validation_digests";
inline constexpr char kSkippedAttribute[] = "skipped_steps";
inline constexpr char kLossesAttribute[] = "recent_losses";
inline constexpr char kRollbacksAttribute[] = "rollbacks";
inline constexpr char kPositionAttribute[] = "data_position";

// The identity of a run besides its tensors; stored as attributes of each checkpoint.
struct RunIdentity {
  std::string run_id;
  Config config;
  std::string tokenizer_identity;  // Tokenizer::identity
  std::string tokenizer_model;     // the bytes of its file, which lie in every checkpoint
  std::string data_digest;         // of the training corpus's tokens
  std::string task_digests;        // FinetuningData::task_digests; empty: it learns no tasks
  std::string shards_digest;  // of its token shards, which early checkpoints have as data_digest
  std::string validation_digest;        // of the validation corpus's tokens; empty: there is none
  std::string task_validation_digests;  // FinetuningData::task_validation_digests
  std::string initial;  // where its first parameters come from; empty: from initialisation
  // Steps that its optimizer had made before the run's first one (checkpoint.initial_state).
  int64_t optimizer_steps_before = 0;
  int world_size = 1;
};

// Where a run stands, besides its tensors.
struct RunPosition {
  int64_t step = 0;           // steps done
  std::string skipped_steps;  // SkippedSteps::ToText
  std::string recent_losses;  // LossSpikes::ToText
  std::string rollbacks;      // Rollbacks::ToText
  std::string data_position;  // TrainingData::PositionAt; empty in the first checkpoints
};

// The number of steps from one evaluation whose model is saved to the next: finetuning saves every
// model that it evaluates. 0: none.
int64_t SavedEvaluationsEvery(const Config& config);
// The steps after which a run with this configuration saves by schedule. If these are only its
// first and its last, all checkpoints count as scheduled.
SaveSchedule ScheduleOf(const Config& config);

// InfoOf: what a checkpoint says of the run besides its tensors. OptionsOf: how the checkpoint is
// kept; it is committed only while the run has its directory.
CheckpointInfo InfoOf(const RunIdentity& identity, const RunPosition& position);
SaveOptions OptionsOf(const Config& config, const RunLock& lock);

// Throws Error(kDiverged), naming the newest checkpoint that there is, if some of the state is not
// finite (`bad`, NotFinite): such a state must not take the place of a good one.
void RequireFinite(const std::string& bad, int64_t step, const Path& root);

// Saves parameters and optimizer state, if they are finite.
void SaveSnapshot(const Path& root, const RunIdentity& identity, const RunPosition& position,
                  std::span<const TensorRecord> state, const SaveOptions& options);

// Reads the replica's part of every tensor, and where the run's first parameters came from. Throws
// Error(kCheckpoint) if names or shapes differ, or values are not finite.
RunPosition LoadSnapshot(Checkpoint& checkpoint, Replica& replica, RunIdentity* identity);

// Reads the parameters only, for example to evaluate. Throws Error(kCheckpoint) as LoadSnapshot
// does.
void LoadParameters(Checkpoint& checkpoint, EvaluationReplica& replica);

// The configuration that the checkpoint was made with.
Config ConfigOf(const Path& path, const CheckpointInfo& info);
// The checkpoint's configuration with overrides applied. Where the checkpoint holds its tokenizer,
// data.tokenizer is set only if an override sets it.
Config ConfigOf(const Checkpoint& checkpoint, std::span<const std::string> overrides = {},
                const ConfigPurpose& purpose = kForModel);

// The tokenizer of ConfigOf: the checkpoint's own, or the one that data.tokenizer names. Throws
// Error(kData) if the model was trained with another tokenizer, Error(kConfig) if there is neither
// or if the model has no row for some of its ids.
Tokenizer TokenizerOf(Checkpoint& checkpoint, const Config& config);

// The identity of the tokenizer that the parameters were trained with (Tokenizer::identity); "" if
// not known.
std::string TokenizerIdentityOf(const Checkpoint& checkpoint);

}  // namespace syntra
