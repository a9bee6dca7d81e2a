// SPDX-License-Identifier: Apache-2.0
// Whether a run may continue from a checkpoint with its present configuration, and what that
// changes.
#pragma once

#include <string>

#include "checkpoint/recover.h"
#include "data/prepare.h"
#include "run/run_history.h"
#include "train/snapshot.h"

namespace syntra {

// Whether both can name the same place. A run may have begun in another working directory, so a
// relative path `then` may be the end of an absolute one.
bool IsSamePlace(const std::string& then, const std::string& now);

// Whether the run was trained on the token shards of this digest (CorpusIndex::DataDigest). Shards
// with another digest may still hold the same tokens.
bool HasShards(const CheckpointSummary& checkpoint, const std::string& digest);

// Throws Error(kCheckpoint), with a field-by-field difference, if the run may not continue from the
// checkpoint: the model, the optimizer, the data or the batch changed. An empty digest in
// `identity` is not known yet, and is not compared. Throws Error(kConfig) if the checkpoint has
// more steps than the run is to have. Other validation examples only give a warning in the log:
// they change no parameter, but what they give cannot be compared with what came before.
void CheckContinues(const CheckpointSummary& checkpoint, const RunIdentity& identity);

// How the learning rate changes: "train.steps: 100 -> 1000; the learning rate of the next step
// changes from 0.002 to 0.0128"; "" if neither steps nor schedule changed.
std::string ScheduleChange(const CheckpointSummary& checkpoint, const Config& config);

// What decides the results of a run that is done, and is not as this configuration says:
// "optimizer.schedule.rate: 0.1 -> 0.2, evaluation.examples: 0 -> 500"; "" if there is nothing.
std::string OtherResults(const CheckpointSummary& checkpoint, const Config& config);

// "steps 1 to 60 had other learning rates than train.steps and optimizer.schedule now give": of a
// run that was continued under another schedule. "" if all its steps had these.
std::string OtherRates(const RunHistory& history, const Config& config);

// The other fields that changed, as "a: 1 -> 2, b: 3 -> 4"; "" if there are none.
std::string OtherChanges(const CheckpointSummary& checkpoint, const Config& config);

}  // namespace syntra
