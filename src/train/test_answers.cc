// SPDX-License-Identifier: Apache-2.0
#include "train/test_answers.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "train/agreement.h"
#include "train/task_evaluator.h"

namespace syntra {
namespace {

// Whether the file gives what the task's metrics read. A target alone does not say so: that of
// WSC's test split is the referent that is asked about, right or wrong.
bool IsJudgeable(const Task& task, const TaskExample& example) {
  return std::ranges::all_of(task.traits().metrics, [&](const std::string& name) {
    return FindMetric(name).reads == Metric::Reads::kTexts ? !example.accepted_texts.empty()
                                                           : example.expected >= 0;
  });
}

}  // namespace

void TestAnswers::CompareFiles(RunContext& run, std::span<const TaskData> tasks) {
  if (run.ranks.size() == 1) return;
  const Path folder = TaskFolderOf(run.config.data()).directory;
  Facts facts;
  for (const TaskData& data : tasks) {
    for (const TaskSplit* split : TestSplits(*data.task, folder)) {
      std::string digests;
      for (const Path& path : FilesOf(*split, folder)) {
        File file = File::OpenForRead(path);
        digests += ToHex(DigestOfRest(file, [&] { run.watchdog.Alive(); }));
      }
      facts.emplace_back(PredictionsName(data.task->traits(), *split) + ", digest of its files",
                         digests);
    }
  }
  CheckAgreement(run.ranks, facts, ExitCode::kData, "test files", kGiveSameFiles);
}

bool TestAnswers::Answer(RunContext& run, int64_t step, const Task& task, Answerer& answerer,
                         const std::function<void()>& load) {
  WatchedBatches batches(run, step);
  const TaskFolder folder = TaskFolderOf(run.config.data());
  const auto splits = TestSplits(task, folder.directory);
  if (!splits.empty()) load();
  for (const TaskSplit* split : splits) {
    const auto start = Clock::now();
    int64_t left_out = 0;
    const std::vector<TaskExample> examples = ReadSplit(task, *split, folder, &left_out);
    run.watchdog.Alive();
    const auto answers = answerer.Answer(task, examples, [&] { return batches.Stop(); });
    if (!answers) return false;
    if (!run.is_chief()) continue;
    run.chief->lock.CheckHeld();
    Write(task, *split, *answers, left_out);
    run.chief->records->WriteEvent("evaluation", step,
                                   {{"seconds", SecondsSince(start)}, {"split", split->name}});
  }
  return true;
}

void TestAnswers::Write(const Task& task, const TaskSplit& split, const Answers& answers,
                        int64_t left_out) {
  const std::string name = PredictionsName(task.traits(), split);
  StagePredictions(directory_.predictions(), name, task, answers).PutInPlace();
  if (!split.submission.empty()) {
    CreateDirectoriesDurably(directory_.submission());
    ReplaceFileDurably(directory_.submission() / split.submission, task.Submission(answers));
    if (left_out > 0) lacking_[split.submission] = left_out;
  }
  const auto is_judgeable = [&](const Prediction& answer) {
    return IsJudgeable(task, answer.example);
  };
  const int64_t judgeable = std::ranges::count_if(answers, is_judgeable);
  if (judgeable == 0) return;
  if (judgeable < std::ssize(answers)) {
    Log().info("{}: not judged, since only {} of {} examples have an answer in the file", name,
               WithThousands(judgeable), WithThousands(std::ssize(answers)));
    return;
  }
  const NamedValues values = MetricsOf(task, JudgementsOf(task, answers));
  Log().info("{}: {} over {}", name, Describe(values), Counted(std::ssize(answers), "example"));
  metrics_[name] = ToJson(values);
}

void TestAnswers::ZipSubmissions() const {
  syntra::ZipSubmissions(directory_.submission(), lacking_);
}

}  // namespace syntra
