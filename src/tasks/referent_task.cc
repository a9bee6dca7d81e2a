// SPDX-License-Identifier: Apache-2.0
#include "tasks/referent_task.h"

#include "metrics/wsc_text.h"

namespace syntra {

Judgement ReferentTask::Judge(const TaskExample& example, std::string_view text) const {
  Judgement judgement = Task::Judge(example, text);
  judgement.predicted = NamesReferent(text, example.targets);
  return judgement;
}

bool ReferentTask::NamesTarget(const Prediction& prediction) {
  return NamesReferent(prediction.text, prediction.example.targets) == 1;
}

}  // namespace syntra
