// SPDX-License-Identifier: Apache-2.0
// The answers to the tasks' test splits, which a finetuning run gives at its end: files of
// predictions, submissions to the benchmarks, and metrics of the splits whose files hold the
// expected answers.
#pragma once

#include <functional>
#include <span>

#include "base/json.h"
#include "tasks/submission.h"
#include "train/answers.h"
#include "train/run_context.h"
#include "train/run_directory.h"

namespace syntra {

class TestAnswers {
 public:
  explicit TestAnswers(RunDirectory directory) : directory_(std::move(directory)) {}

  // Collective: ranks share the examples of test splits, which they read when all is trained.
  // Throws Error(kData) if their files differ.
  static void CompareFiles(RunContext& run, std::span<const TaskData> tasks);

  // Collective. Answers the test splits of the task; `load` first puts the model in place that
  // answers, if there is a split. False: the run was asked to stop.
  bool Answer(RunContext& run, int64_t step, const Task& task, Answerer& answerer,
              const std::function<void()>& load);

  // The archives that the benchmarks take; rank 0 only, after all answers.
  void ZipSubmissions() const;

  // By PredictionsName, of splits whose files hold the expected answers; on rank 0.
  const Json& metrics() const { return metrics_; }

 private:
  void Write(const Task& task, const TaskSplit& split, const Answers& answers, int64_t left_out);

  RunDirectory directory_;
  Json metrics_ = Json::object();
  LackingRows lacking_;  // in files of submissions
};

}  // namespace syntra
