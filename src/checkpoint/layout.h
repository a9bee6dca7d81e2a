// SPDX-License-Identifier: Apache-2.0
// Names inside a checkpoint root and inside one checkpoint; format.md describes them for other
// readers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace syntra {

inline constexpr std::string_view kManifestName = "MANIFEST";
inline constexpr std::string_view kIndexName = "tensors.h5";
// The tokenizer's model, as SentencePiece wrote it.
inline constexpr const char* kTokenizerFile = "tokenizer.model";
// The prefix of the names of parameters.
inline constexpr const char* kParametersGroup = "parameters/";
// The prefix of the names of the optimizer's state.
inline constexpr const char* kOptimizerGroup = "optimizer/";
// Attributes that every reader of a model needs: the configuration, the identity of the tokenizer,
// the origin of the first parameters, and the number of steps that the optimizer had made before
// the run.
inline constexpr char kConfigAttribute[] = "config";
inline constexpr char kTokenizerAttribute[] = "tokenizer_digest";
inline constexpr char kInitialAttribute[] = "initial";
inline constexpr char kOptimizerStepsAttribute[] = "optimizer_steps_before";
// The checkpoints' place in a run directory.
inline constexpr const char* kCheckpointsFolder = "checkpoints";
// Prefixes of entries of a root that are not checkpoints: they are being written, are being
// deleted, or were found to be damaged.
inline constexpr std::string_view kBuildingPrefix = ".tmp-";
inline constexpr std::string_view kTrashPrefix = ".trash-";
inline constexpr std::string_view kReplacedPrefix = ".replaced-";
inline constexpr std::string_view kBadPrefix = ".bad-";

std::string StepName(int64_t step);  // "step-0000012300"
// The step of a name that StepName makes; nullopt for all other names.
std::optional<int64_t> ParseStepName(std::string_view name);

std::string ShardName(size_t index);  // "shard-00003.h5"
// True for names that may be in a manifest: plain file names that cannot leave the directory.
bool IsSafeFileName(std::string_view name);

// The names in a directory, sorted. Throws Error(kResources).
std::vector<std::string> DirectoryNames(const Path& directory);

struct CheckpointRef {
  Path path;
  int64_t step = 0;

  bool operator==(const CheckpointRef&) const = default;
};

// Whether the schedule alone makes a run save after `step`, rather than a request, a stop or the
// end of the run. An empty function counts every step as scheduled.
using SaveSchedule = std::function<bool(int64_t step)>;
inline bool IsScheduled(const SaveSchedule& schedule, int64_t step) {
  return !schedule || schedule(step);
}

// All entries of `root` that are named like a checkpoint, by step, unverified. A missing root is
// empty. Throws Error(kCheckpoint) if it is not a directory.
std::vector<CheckpointRef> ListCheckpoints(const Path& root);

}  // namespace syntra
