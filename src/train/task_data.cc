// SPDX-License-Identifier: Apache-2.0
#include "train/task_data.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "data/mixture.h"
#include "train/task_labels.h"

namespace syntra {
namespace {

std::shared_ptr<const ExampleSource> MixtureOf(
    std::vector<std::shared_ptr<const ExampleSource>> sources, const DataConfig& config,
    uint64_t seed) {
  if (sources.size() == 1) return sources.front();
  return std::make_shared<Mixture>("mixture", std::move(sources),
                                   MixtureRates::From(config.mixture()), seed);
}

// Lengths before texts, so that no two lists of texts have the same bytes.
void AddText(std::string_view text, DigestStream* digest) {
  const uint64_t size = text.size();
  digest->Add(std::as_bytes(std::span(&size, 1)));
  digest->Add(std::as_bytes(std::span(text)));
}

void AddValidation(const TaskData& task, DigestStream* digest) {
  for (const TaskSplitData& split : task.validation) {
    AddText(split.split->name, digest);
    for (const TaskExample& example : split.examples) {
      AddText(example.inputs, digest);
      AddText(example.targets, digest);
    }
  }
}

std::string TaskDigestLine(const Digest& digest, const std::string& task) {
  return fmt::format("{} {}\n", ToHex(digest), task);
}

std::vector<TaskData> ReadValidationOf(std::vector<std::unique_ptr<Task>> tasks,
                                       const Config& config, const std::function<void()>& alive) {
  const TaskFolder folder = TaskFolderOf(config.data());
  const std::vector<int32_t> classes = FirstClassIds(config.model(), tasks);
  const int64_t most = config.evaluation().examples();
  std::vector<TaskData> read;
  for (size_t i = 0; i < tasks.size(); ++i) {
    TaskData& entry = read.emplace_back();
    entry.task = std::move(tasks[i]);
    if (!classes.empty()) entry.first_class = classes[i];
    for (const TaskSplit& split : entry.task->traits().splits) {
      if (split.use != TaskSplit::Use::kValidation) continue;
      std::vector<TaskExample> examples = ReadSplit(*entry.task, split, folder);
      const int64_t left_out = most > 0 ? std::max<int64_t>(0, std::ssize(examples) - most) : 0;
      examples.resize(examples.size() - left_out);
      entry.validation.push_back({&split, std::move(examples), left_out});
      if (alive) alive();
    }
  }
  return read;
}

}  // namespace

int64_t TaskData::ValidationExamples() const {
  int64_t count = 0;
  for (const TaskSplitData& split : validation) count += std::ssize(split.examples);
  return count;
}

int64_t TaskData::LeftOutExamples() const {
  int64_t count = 0;
  for (const TaskSplitData& split : validation) count += split.left_out;
  return count;
}

std::vector<TextPair> PairsOf(std::span<const TaskExample> examples, int32_t first_class) {
  std::vector<TextPair> pairs;
  for (const TaskExample& example : examples) {
    pairs.push_back({example.inputs, example.targets});
    if (first_class > 0) {
      pairs.back().class_id = first_class + static_cast<int32_t>(example.expected);
    }
  }
  return pairs;
}

void CheckTasksCanStart(const Config& config, std::span<const std::unique_ptr<Task>> tasks) {
  const TaskFolder folder = TaskFolderOf(config.data());
  RequireFiles(tasks, folder.directory);
  FirstClassIds(config.model(), tasks);
  for (const std::unique_ptr<Task>& task : tasks) {
    for (const TaskSplit& split : task->traits().splits) {
      if (split.use != TaskSplit::Use::kTest) CheckExamples(*task, split, folder);
    }
  }
}

std::vector<TaskData> ReadValidation(const Config& config) {
  return ReadValidationOf(MakeTasks(config.data()), config, {});
}

void FailWithoutSplit(TaskSplit::Use use) {
  Fail(ExitCode::kConfig, "no task of data.task has a {} split",
       use == TaskSplit::Use::kTrain ? "training" : "validation");
}

Digest ValidationDigest(std::span<const TaskData> tasks) {
  DigestStream digest;
  for (const TaskData& task : tasks) AddValidation(task, &digest);
  return digest.Finish();
}

FinetuningData FinetuningData::Read(const Config& config, const Tokenizer& tokenizer,
                                    const std::function<void()>& alive) {
  const TaskFolder folder = TaskFolderOf(config.data());
  std::vector<std::unique_ptr<Task>> tasks = MakeTasks(config.data());
  RequireFiles(tasks, folder.directory);
  CheckTaskLabels(config, tokenizer, tasks);
  FinetuningData data;
  data.tasks = ReadValidationOf(std::move(tasks), config, alive);
  std::vector<std::shared_ptr<const ExampleSource>> sources;
  for (TaskData& entry : data.tasks) {
    const TaskSplit* split = TrainingSplitOf(entry.task->traits());
    if (!split) continue;
    const std::vector<TaskExample> examples = ReadSplit(*entry.task, *split, folder);
    entry.training_examples = std::ssize(examples);
    entry.majority_answer = MajorityAnswer(*entry.task, examples);
    entry.labels_without_examples = LabelsWithoutExamples(*entry.task, examples);
    if (alive) alive();
    const auto table =
        MakeTable(entry.name(), PairsOf(examples, entry.first_class), config.data(), tokenizer);
    data.cut_examples += table->cut_count();
    data.task_digests += TaskDigestLine(table->ContentDigest(), entry.name());
    sources.push_back(table);
    if (alive) alive();
  }
  if (sources.empty()) FailWithoutSplit(TaskSplit::Use::kTrain);
  data.training = MixtureOf(std::move(sources), config.data(), config.train().seed());
  data.validation_digest = ValidationDigest(data.tasks);
  for (const TaskData& task : data.tasks) {
    if (task.validation.empty()) continue;
    data.task_validation_digests += TaskDigestLine(ValidationDigest({&task, 1}), task.name());
  }
  return data;
}

}  // namespace syntra
