// SPDX-License-Identifier: Apache-2.0
// syntra inspect data
#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include "base/json.h"
#include "base/text.h"
#include "cli/checkpoint_options.h"
#include "cli/inspect.h"
#include "cli/run_config.h"
#include "data/corpus_index.h"
#include "data/prepare.h"
#include "data/training_data.h"
#include "data/validation_data.h"
#include "tasks/task.h"
#include "train/run_directory.h"
#include "train/run_tokenizer.h"
#include "train/task_data.h"

namespace syntra {
namespace {

// Looking at data must not cost a run its token shards.
PreparedCorpus PrepareToLook(PrepareOptions options, const Tokenizer& tokenizer) {
  options.replaces_shards = false;
  return PrepareCorpus(options, tokenizer);
}

// The first `count` rows of a split: of its first batch of training, or of its validation examples.
Batch FirstRows(const Config& config, const Tokenizer& tokenizer, bool validation, int64_t count) {
  const DataConfig& data = config.data();
  const RowLayout& layout = ArchitectureOf(config.model()).layout();
  const Path prepared = RunDirectory{config.train().directory()}.Prepared(data);
  if (validation) {
    RequireValidation(data);
    const ValidationData rows = ValidationData::Open(
        data, layout, tokenizer, PrepareToLook(ValidationPreparation(data, prepared), tokenizer));
    count = std::min(count, rows.example_count());
    return rows.Get(0, count, 0, count);
  }
  return TrainingData::Open(data, layout, tokenizer,
                            PrepareToLook(TrainingPreparation(data, prepared), tokenizer),
                            config.train().seed())
      .Get(0, count, 0, count);
}

struct Preview {
  std::string task;  // empty: of a corpus
  std::string input, target;
  Json tensors = Json::object();  // by name, what the row has of each
};

std::vector<Preview> PreviewExamples(const Config& config, bool validation, int64_t count) {
  const Tokenizer tokenizer = OpenTokenizer(config);
  const Batch batch = FirstRows(config, tokenizer, validation, count);
  // Without EOS, which would end the text: packed rows hold several examples.
  const auto text = [&](std::vector<int32_t> ids) {
    std::erase(ids, tokenizer.eos_id());
    std::erase(ids, kIgnoredTarget);
    return tokenizer.Decode(ids);
  };
  std::vector<Preview> examples;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const std::span<const int32_t> targets = batch.Row("targets", row);
    Preview example{"", text(ArchitectureOf(config.model()).layout().InputsOf(batch, row)),
                    text({targets.begin(), targets.end()})};
    for (const auto& [name, values] : batch.tensors()) {
      const std::span<const int32_t> ids = batch.Row(name, row);
      example.tensors[name] = std::vector(ids.begin(), ids.end());
    }
    examples.push_back(std::move(example));
  }
  return examples;
}

// The first `count` examples of each task, as the model reads and writes them.
std::vector<Preview> PreviewTasks(const Config& config, bool validation, int64_t count) {
  const auto use = validation ? TaskSplit::Use::kValidation : TaskSplit::Use::kTrain;
  const TaskFolder folder = TaskFolderOf(config.data());
  std::vector<Preview> previews;
  for (const std::unique_ptr<Task>& task : MakeTasks(config.data())) {
    for (const TaskSplit& split : task->traits().splits) {
      if (split.use != use) continue;
      const std::vector<TaskExample> examples = ReadSplit(*task, split, folder);
      for (int64_t i = 0; i < std::min(count, std::ssize(examples)); ++i) {
        previews.push_back({task->traits().name, examples[i].inputs, examples[i].targets});
      }
    }
  }
  if (previews.empty()) FailWithoutSplit(use);
  return previews;
}

void PrintPreviews(const std::vector<Preview>& previews, bool as_json) {
  Json list = Json::array();
  for (const Preview& preview : previews) {
    Json json = Json::object();
    if (!preview.task.empty()) json["task"] = preview.task;
    json.update({{"input", preview.input}, {"target", preview.target}});
    json.update(preview.tensors);
    list.push_back(std::move(json));
    if (as_json) continue;
    if (!preview.task.empty()) fmt::print("task:   {}\n", Printable(preview.task));
    fmt::print("input:  {}\ntarget: {}\n\n", Printable(preview.input), Printable(preview.target));
  }
  if (as_json) fmt::print("{}\n", JsonText({{"examples", list}}));
}

}  // namespace

Action SetUpInspectData(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  struct Form {
    int64_t count = 3;
    std::string split = "train";
    bool json = false;
  };
  const auto form = std::make_shared<Form>();
  app.add_option("--examples", form->count,
                 "Print this many of the first rows, or of each task's first examples")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--split", form->split, "Split to print rows of")
      ->check(CLI::IsMember({"train", "validation"}))
      ->capture_default_str();
  app.add_flag("--json", form->json, "Print JSON; for corpora, with the rows' tensors");
  return [options, form] {
    const bool validation = form->split == "validation";
    PrintPreviews(
        NamesTasks(*options)
            ? PreviewTasks(LoadForFinetuning(*options, {.may_lack = true}, kForModel).config,
                           validation, form->count)
            : PreviewExamples(options->Load(kForTraining), validation, form->count),
        form->json);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
