// SPDX-License-Identifier: Apache-2.0
// The decoding that a run's evaluations do, and its memory.
#pragma once

#include "decode/batch_decoder.h"
#include "plan/planned_model.h"
#include "tasks/task.h"

namespace syntra {

class TrainingPlan;

// The model as decoding and scoring read it. `parameters`: the arenas that hold its parameters;
// none where only sizes are asked for.
TrainedModel TrainedModelOf(const PlannedModel& model, const Arenas& parameters, Backend& backend);

// Whether examples of the task are answered with one of its labels, chosen by the model's
// probability of each, and not with decoded text.
bool RanksLabels(const Config& config, const Task& task);

// The memory for decoding samples of validation data, or the answers to tasks; zeros if neither is
// decoded. Throws Error(kConfig) if the model cannot decode.
DecodingMemory DecodingMemoryOf(const TrainingPlan& plan);

}  // namespace syntra
