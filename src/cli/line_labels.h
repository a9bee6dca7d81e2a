// SPDX-License-Identifier: Apache-2.0
// `generate` with a classifier, or with rank classification of a task's labels: the label of each
// line.
#pragma once

#include <string>

#include "cli/checkpoint_options.h"
#include "cli/line_answers.h"

namespace syntra {

struct LineLabelsForm {
  std::string task;   // the task whose labels are given; empty: the model's only task
  bool json = false;  // with the log-probabilities of all labels
};

// Answers the lines of standard input. A line has the fields of the task's input, with tabs between
// them. Collective. Throws Error(kConfig) if it is not clear which task's labels are meant, or if
// its inputs are more than fields in a text.
void LabelLines(const LoadedModel& model, const LineLabelsForm& form, Communicator& ranks,
                LineAnswers& answers);

}  // namespace syntra
