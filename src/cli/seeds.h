// SPDX-License-Identifier: Apache-2.0
// Runs that differ only in their seeds.
#pragma once

#include <span>

#include "base/file.h"
#include "base/json.h"
#include "configs/schema/config.pb.h"
#include "train/trainer.h"

namespace syntra {

// Of the directory of a run with one of several seeds: seed-N.
inline constexpr char kSeedPrefix[] = "seed-";

// The configuration of run number `index` of `seeds`: its seed is train.seed + index. If there are
// several runs, each has its own directory, seed-N in train.directory.
Config OfSeed(Config config, int index, int seeds);

// Throws Error(kConfig) if the directory is that of a run: those of several seeds or mixers, which
// lie in it, would mix with that run's files.
void RequireNoRun(const Path& directory);

// Throws Error(kConfig) if the directory holds the runs of several seeds, whose results a single
// run would replace.
void RequireNoSeeds(const Path& directory);

// Throws as CheckContinues if a run of these seeds has begun and cannot continue with this
// configuration: before another one is trained.
void RequireContinuable(const Config& config, int seeds);

// Why the results of a run that is done are not those of this configuration: "DIRECTORY was done
// before with other settings (a: 1 -> 2); ..." or "DIRECTORY was continued: steps 1 to 60 had other
// learning rates than ..."; "" if they are.
std::string OtherSettingsOf(const Config& config, const RunOutcome& outcome);

// The results (results.json) of finetuning runs as one: means over the runs, and under "deviations"
// and "average_deviation" their standard deviations. There is at least one run.
Json SpreadOfRuns(std::span<const Json> runs);

}  // namespace syntra
