// SPDX-License-Identifier: Apache-2.0
// Tasks that ask for the referent of a marked pronoun: "wsc: Tom asked *him* ...".
#pragma once

#include "tasks/task.h"

namespace syntra {

class ReferentTask : public Task {
 public:
  using Task::Task;

  // The target is the referent in question, and expected whether the pronoun stands for it. An
  // answer counts as 1 if it names the target, as 0 if it names something else, as -1 if nothing.
  Judgement Judge(const TaskExample& example, std::string_view text) const override;

 protected:
  static bool NamesTarget(const Prediction& prediction);
};

}  // namespace syntra
