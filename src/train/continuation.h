// SPDX-License-Identifier: Apache-2.0
// Whether a run may continue from a checkpoint with its present configuration, and what that
// changes.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/manifest.h"
#include "data/prepare.h"
#include "train/snapshot.h"

namespace syntra {

// A checkpoint as its manifest describes it; whether its tensors are sound is not looked at.
struct CheckpointSummary {
  Path path;
  CheckpointInfo info;
};

// The newest checkpoint in `root` whose manifest can be read; nullopt if there is no checkpoint.
// Throws Error(kCheckpoint) if there are some and none can be read. Changes nothing.
std::optional<CheckpointSummary> NewestSummary(const Path& root);

// Whether the run was trained on the token shards of this digest (CorpusIndex::DataDigest). Shards
// with another digest may still hold the same tokens.
bool HasShards(const CheckpointSummary& checkpoint, const std::string& digest);

// Throws Error(kCheckpoint), with a field-by-field difference, if the run may not continue from the
// checkpoint: the model, the optimizer, the data or the batch changed. An empty digest in
// `identity` is not known yet, and is not compared. Throws Error(kConfig) if the checkpoint has
// more steps than the run is to have. Another validation corpus only gives a warning in the log: it
// changes no parameter, but later log-perplexities cannot be compared with earlier ones.
void CheckContinues(const CheckpointSummary& checkpoint, const RunIdentity& identity);

// How the learning rate changes: "train.steps: 100 -> 1000; the learning rate of the next step
// changes from 0.002 to 0.0128"; "" if neither steps nor schedule changed.
std::string ScheduleChange(const CheckpointSummary& checkpoint, const Config& config);

// The other fields that changed, as "a: 1 -> 2, b: 3 -> 4"; "" if there are none.
std::string OtherChanges(const CheckpointSummary& checkpoint, const Config& config);

}  // namespace syntra
