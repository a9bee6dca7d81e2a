// SPDX-License-Identifier: Apache-2.0
// Finetuning: a model that was trained before learns tasks (data.task) as text in, text out, and is
// judged by their metrics on the validation splits.
//
// Beside what every run directory has:
//   results.json             the best value of each task, in percent; none of a task without a
//                            validation split
//   predictions/<task>.jsonl what the model answered there
//   predictions/<task>_<split>.jsonl, submission/<file>
//                            the best model's answers to test splits whose files are there, also as
//                            the benchmarks' servers take them ("CoLA.tsv", "BoolQ.jsonl")
//   submission/<benchmark>.zip
//                            these files as one archive: "glue.zip", "superglue.zip"
//   best/<task>/             the checkpoint with that best value
#pragma once

#include "base/file.h"
#include "base/json.h"
#include "configs/schema/config.pb.h"
#include "train/trainer.h"

namespace syntra {

inline constexpr char kResultsFile[] = "results.json";

// The results in the directory of a run that is done. Throws Error(kCheckpoint) if they are missing
// or damaged.
Json ReadResults(const Path& directory);

// As Train (train/trainer.h), for finetuning.
RunOutcome Finetune(const Config& config, const RankContext& rank,
                    std::optional<InitialModel> initial = std::nullopt);

}  // namespace syntra
