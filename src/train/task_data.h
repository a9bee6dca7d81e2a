// SPDX-License-Identifier: Apache-2.0
// The examples of the tasks that a model is finetuned on, read once and kept in memory.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/table_source.h"
#include "data/training_data.h"
#include "tasks/task.h"

namespace syntra {

// A split that a task is judged on.
struct TaskSplitData {
  const TaskSplit* split = nullptr;  // of the task
  std::vector<TaskExample> examples;
  int64_t left_out = 0;  // how many more there are, for which evaluation.examples leaves no room
};

struct TaskData {
  std::unique_ptr<Task> task;
  std::vector<TaskSplitData> validation;
  int64_t training_examples = 0;
  int32_t first_class = 0;      // the id of its first label (FirstClassIds); 0: answered with text
  std::string majority_answer;  // MajorityAnswer of the training split
  std::vector<std::string> labels_without_examples;  // in the training split

  const std::string& name() const { return task->traits().name; }
  // Of all validation splits.
  int64_t ValidationExamples() const;
  int64_t LeftOutExamples() const;
};

// As a model learns them; `first_class`: TaskData::first_class.
std::vector<TextPair> PairsOf(std::span<const TaskExample> examples, int32_t first_class);

// Whether these tasks of a configuration can be learned, as far as can be known without reading
// large files through: files for training and validation are there and have examples
// (CheckExamples), and the model has their classes. Throws as FinetuningData::Read.
void CheckTasksCanStart(const Config& config, std::span<const std::unique_ptr<Task>> tasks);

// The tasks of a configuration with their validation splits, each cut to the first
// evaluation.examples; no training split is read. Throws as FinetuningData::Read.
std::vector<TaskData> ReadValidation(const Config& config);
// Throws Error(kConfig): none of the tasks has a split for this use, training or validation.
[[noreturn]] void FailWithoutSplit(TaskSplit::Use use);
// The digest of the examples of all of these splits.
Digest ValidationDigest(std::span<const TaskData> tasks);

// The tasks of a configuration, and one source of all their training examples: each in proportion
// to its size, as data.mixture says. Throws Error(kData) if files are missing or bad,
// Error(kConfig) if the model does not have the tasks' classes or cannot write their labels.
struct FinetuningData {
  std::vector<TaskData> tasks;
  std::shared_ptr<const ExampleSource> training;
  // A line for each task that is trained on: the digest of its examples, a space, its name. The
  // same for each that is judged.
  std::string task_digests, task_validation_digests;
  int64_t cut_examples = 0;  // training examples that were too long
  Digest validation_digest{};

  // `alive` is called after each split.
  static FinetuningData Read(const Config& config, const Tokenizer& tokenizer,
                             const std::function<void()>& alive = {});
};

}  // namespace syntra
