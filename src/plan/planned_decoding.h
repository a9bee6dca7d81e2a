// SPDX-License-Identifier: Apache-2.0
// What the evaluations of a run decode, and the memory of that.
#pragma once

#include "decode/batch_decoder.h"
#include "plan/planned_model.h"
#include "tasks/task.h"

namespace syntra {

class TrainingPlan;

// What decoding and scoring read. `parameters`: the arenas that they lie in; none where only sizes
// are asked for.
TrainedModel TrainedModelOf(const PlannedModel& model, const Arenas& parameters, Backend& backend);

// As evaluations of this configuration decode: greedily.
DecodeSettings EvaluationSettingsOf(const Config& config);

// Whether examples of the task are answered with one of its labels, by what the model gives for
// each, and not with text that is decoded.
bool RanksLabels(const Config& config, const Task& task);

// The memory for decoding samples of validation data, or the answers to tasks; zeros if neither is
// decoded. Throws Error(kConfig) if the model cannot decode.
DecodingMemory DecodingMemoryOf(const TrainingPlan& plan);

}  // namespace syntra
