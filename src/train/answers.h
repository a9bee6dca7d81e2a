// SPDX-License-Identifier: Apache-2.0
// A model's answers to the examples of tasks: text that is decoded or, with
// evaluation.rank_classification or a model that predicts classes, a task's most probable label.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/batch_decoder.h"
#include "decode/scorer.h"
#include "train/task_data.h"

namespace syntra {

// In the order of a split's examples.
using Answers = std::vector<Prediction>;

// How many of a split's examples are answered by all ranks together, as far as one rank can tell.
struct AnswerProgress {
  const Task& task;
  int64_t done = 0, total = 0;
  double seconds = 0;
};

class Answerer {
 public:
  using Ids = std::vector<int32_t>;
  // Called after each batch of this rank.
  using OnProgress = std::function<void(const AnswerProgress&)>;

  // All must outlive it. Throws Error(kConfig) if a task is answered with text and the model cannot
  // decode.
  Answerer(const TrainedModel& model, const Tokenizer& tokenizer, const Config& config,
           std::span<const TaskData> tasks, Communicator& ranks, OnProgress on_progress = {});

  // All ranks call it with the same examples, share the work and get all answers. `stop` as for
  // Evaluator::Evaluate: once it is true, there are none.
  std::optional<Answers> Answer(const Task& task, std::span<const TaskExample> examples,
                                const std::function<bool()>& stop);

  // The log-probability of each label of `task` for each input. Inputs end with EOS and have at
  // most RowLengths(...).inputs tokens. Only for tasks that are answered with labels. Collective.
  std::vector<std::vector<double>> LabelScores(const Task& task, std::vector<Ids> inputs,
                                               const OnBatch& on_batch = {});

 private:
  // The targets that stand for each label.
  std::vector<Ids> TargetsOf(const Task& task) const;
  std::vector<std::string> Texts(const Task& task, std::vector<Ids> inputs,
                                 const OnBatch& on_batch);
  // The decoded texts; greedily, only as far as the judgement depends on them (Task::IsSettled).
  std::vector<std::string> Decoded(const Task& task, std::vector<Ids> inputs,
                                   const OnBatch& on_batch);
  std::vector<std::string> MostProbableLabels(const Task& task, std::vector<Ids> inputs,
                                              const OnBatch& on_batch);

  const Tokenizer& tokenizer_;
  Communicator& ranks_;
  const Config& config_;
  ExampleLengths lengths_;                      // of the longest inputs and targets
  std::map<const Task*, int32_t> first_class_;  // TaskData::first_class where there is one
  OnProgress on_progress_;
  std::optional<BatchDecoder> decoder_;  // if a task is answered with text
  Scorer scorer_;
};

}  // namespace syntra
