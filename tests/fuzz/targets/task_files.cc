// SPDX-License-Identifier: Apache-2.0
// A file of a benchmark's task, beside the others that the task needs: examples are text, and the
// right answer is judged as right. The first byte chooses the file.
#include "base/utf8.h"
#include "fuzz/target.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

// Which of the files of a split the input takes the place of.
struct Place {
  const Task* task = nullptr;
  const TaskSplit* split = nullptr;
  std::vector<Path> files;
  size_t fuzzed = 0;
};

std::vector<std::unique_ptr<Task>> AllTasks() {
  std::vector<std::unique_ptr<Task>> tasks;
  for (const std::string& kind : OfficialKinds()) tasks.push_back(TaskOf(kind + " {}"));
  tasks.push_back(TaskOf("wsc { use_dpr: true }"));
  tasks.push_back(
      TaskOf("classification { name: 'own' train: 'SST-2/train.tsv' input: '{sentence}' "
             "label: 'negative' label: 'positive' label_value: '0' label_value: '1' }"));
  tasks.push_back(
      TaskOf("text_to_text { name: 'free' train: 'BoolQ/train.jsonl' input: '{question} {passage}' "
             "target: '{label}' }"));
  tasks.push_back(
      TaskOf("parallel_text { name: 'pairs' train { input: 'SST-2/train.tsv' target: "
             "'SST-2/dev.tsv' } }"));
  return tasks;
}

const std::vector<Place>& Places() {
  static const std::vector<std::unique_ptr<Task>> tasks = AllTasks();
  static const std::vector<Place> places = [] {
    std::vector<Place> all;
    for (const auto& task : tasks) {
      for (const TaskSplit& split : task->traits().splits) {
        const std::vector<Path> files = FilesOf(split, TaskSample());
        for (size_t i = 0; i < files.size(); ++i) all.push_back({task.get(), &split, files, i});
      }
    }
    SYNTRA_CHECK(all.size() > 20 && all.size() < 256, "{} files", all.size());
    return all;
  }();
  return places;
}

void CheckExample(const Task& task, const TaskExample& example) {
  SYNTRA_CHECK(IsUtf8(example.inputs) && IsUtf8(example.targets));
  const Judgement right = task.Judge(example, example.targets);
  if (!task.traits().labels.empty() && example.targets != kNoTarget) {
    SYNTRA_CHECK(right.predicted == right.expected, "{}: {}", task.traits().name, example.targets);
  }
  task.Judge(example, example.inputs);
  task.IsSettled(example.inputs);
}

void Run(std::string_view input) {
  if (input.empty()) Fail(ExitCode::kData, "no file is chosen");
  const std::vector<Place>& places = Places();
  Place place = places[static_cast<uint8_t>(input[0]) % places.size()];
  Path& path = place.files[place.fuzzed];
  path = InputFile(input.substr(1), path.filename().string());
  std::vector<Prediction> predictions;
  place.task->Read(*place.split, place.files, {.max_fraction = 1}, [&](TaskExample example) {
    CheckExample(*place.task, example);
    std::string text = example.targets;
    predictions.push_back({std::move(example), std::move(text)});
  });
  SYNTRA_CHECK(IsUtf8(place.task->Submission(predictions)));
  for (const Prediction& prediction : predictions) PredictionLine(*place.task, prediction);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  const std::vector<Place>& places = Places();
  for (size_t i = 0; i < places.size(); ++i) {
    seeds.push_back(static_cast<char>(i) + ReadWholeFile(places[i].files[places[i].fuzzed]));
  }
  return seeds;
}

}  // namespace

const Target fuzz_task_files = {
    .name = "task_files",
    .refusals = {ExitCode::kData},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\t", "\n", "\"idx\":", "\"label\":", "{", "}", "[", "]", "null", "-1", "1e300",
               "true", "9223372036854775807", "\"answers\":", "\"text\":", "@highlight",
               "@placeholder", "*", "_"},
    .mutations = 5000};

}  // namespace syntra
