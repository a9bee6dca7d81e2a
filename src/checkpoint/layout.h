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
// What the names of parameters begin with.
inline constexpr const char* kParametersGroup = "parameters/";
// What the names of the optimizer's state begin with.
inline constexpr const char* kOptimizerGroup = "optimizer/";
// Attributes that whatever reads a model needs: the configuration, the identity of the tokenizer,
// where the first parameters came from, and the steps that the optimizer had made before the run.
inline constexpr char kConfigAttribute[] = "config";
inline constexpr char kTokenizerAttribute[] = "tokenizer_digest";
inline constexpr char kInitialAttribute[] = "initial";
inline constexpr char kOptimizerStepsAttribute[] = "optimizer_steps_before";
// The checkpoints' place in a run directory.
inline constexpr const char* kCheckpointsFolder = "checkpoints";
// Entries of a root that are not checkpoints: being written, being deleted, found to be damaged.
inline constexpr std::string_view kBuildingPrefix = ".tmp-";
inline constexpr std::string_view kTrashPrefix = ".trash-";
inline constexpr std::string_view kReplacedPrefix = ".replaced-";
inline constexpr std::string_view kBadPrefix = ".bad-";

std::string StepName(int64_t step);  // "step-0000012300"
// Only names that StepName makes; nullopt for all others.
std::optional<int64_t> ParseStepName(std::string_view name);

std::string ShardName(size_t index);  // "shard-00003.h5"
// True for names that may be in a manifest: plain file names that cannot leave the directory.
bool IsSafeFileName(std::string_view name);

// What `path` itself is, without following a link. Throws Error(kResources) if that cannot be
// known.
std::filesystem::file_type TypeOf(const Path& path);

// The names in a directory, sorted. Throws Error(kResources).
std::vector<std::string> DirectoryNames(const Path& directory);

struct CheckpointRef {
  Path path;
  int64_t step = 0;
};

// Whether a run saves after so many steps in any case: not because it was asked to, stopped or came
// to its end. Empty: all steps are such.
using SaveSchedule = std::function<bool(int64_t step)>;
inline bool IsScheduled(const SaveSchedule& schedule, int64_t step) {
  return !schedule || schedule(step);
}

// All entries of `root` that are named like a checkpoint, by step, unverified. A missing root is
// empty. Throws Error(kCheckpoint) if it is not a directory.
std::vector<CheckpointRef> ListCheckpoints(const Path& root);

}  // namespace syntra
