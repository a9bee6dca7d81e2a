// SPDX-License-Identifier: Apache-2.0
// syntra eval
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "cli/results_table.h"
#include "data/example.h"
#include "data/validation_data.h"
#include "dist/communicator.h"
#include "run/progress.h"
#include "run/watchdog.h"
#include "train/log_perplexity.h"
#include "train/task_data.h"
#include "train/task_evaluator.h"

namespace syntra {
namespace {

struct EvalOptions {
  std::shared_ptr<CheckpointOptions> checkpoint;
  std::string predictions;
  bool json = false;
};

// The function that an evaluation calls now and then. It never asks to stop.
std::function<bool()> KeepAlive(Watchdog& watchdog) {
  return [&watchdog] {
    watchdog.Alive();
    return false;
  };
}

// "; 20 more are left out (evaluation.examples)": of the split.
std::string LeftOutText(int64_t examples, const char* reason) {
  if (examples == 0) return "";
  return fmt::format("; {} more {} left out ({})", WithThousands(examples),
                     examples == 1 ? "is" : "are", reason);
}

void PrintLogPerplexity(const LoadedModel& loaded, const LogPerplexity& result, bool json) {
  if (json) {
    Json all{{"checkpoint", loaded.path.string()},
             {"step", loaded.step},
             {"log_perplexity", result.value},
             {"tokens", result.tokens},
             {"examples", result.examples},
             {"left_out_examples", result.left_out_examples},
             {"batches", result.batches},
             {"label_checksum", fmt::format("{:016x}", result.label_checksum)}};
    if (result.bytes > 0) {
      all.update({{"words", result.words},
                  {"bytes", result.bytes},
                  {"perplexity_per_word", result.PerplexityPerWord()},
                  {"bits_per_byte", result.BitsPerByte()}});
    }
    fmt::print("{}\n", JsonText(all));
  } else {
    fmt::print("{}: log-perplexity {:.4f} over {} target tokens (checksum of targets {:016x})\n",
               loaded.path.string(), result.value, result.tokens, result.label_checksum);
    fmt::print("{} in {} {}{}\n", Counted(result.examples, "example"),
               WithThousands(result.batches), result.batches == 1 ? "batch" : "batches",
               LeftOutText(result.left_out_examples, result.left_out_batches > 0
                                                         ? "evaluation.batches"
                                                         : "they make no whole batch"));
    if (result.bytes > 0) {
      fmt::print("perplexity {:.2f} per word, {:.4f} bits per byte, over {} words and {} bytes\n",
                 result.PerplexityPerWord(), result.BitsPerByte(), result.words, result.bytes);
    }
  }
}

void EvaluateCorpus(const LoadedModel& loaded, const EvalOptions& options, Communicator& ranks,
                    Watchdog& watchdog) {
  CheckGivesTokens(loaded.config.model());
  if (!options.predictions.empty()) {
    Fail(ExitCode::kConfig, "--predictions is for models of tasks, and data.task names none");
  }
  const ValidationData data = OpenValidationData(loaded, ranks, watchdog);
  const Watchdog::Phase phase(watchdog, RunPhase::kEvaluation, loaded.step);
  // Only in language modelling are all words of a text targets.
  const bool counts_text = IsLanguageModelling(loaded.config.data());
  const LogPerplexity result =
      *MeasureLogPerplexity(*loaded.replica, data, ranks, loaded.config, KeepAlive(watchdog),
                            counts_text ? &*loaded.tokenizer : nullptr);
  if (!std::isfinite(result.value)) {
    Fail(ExitCode::kCheckpoint, "the log-perplexity of {} is not finite; use an older checkpoint",
         loaded.path.string());
  }
  if (ranks.rank() == 0) PrintLogPerplexity(loaded, result, options.json);
}

bool IsJudged(const TaskData& task) { return !task.validation.empty(); }

void PrintTaskResults(const LoadedModel& loaded, std::span<const TaskData> tasks,
                      const TaskResults& results, bool json) {
  Json values = results.ToJson();
  values.erase("best_steps");
  values["checkpoint"] = loaded.path.string();
  for (const TaskData& task : tasks) {
    if (!IsJudged(task)) continue;
    values["examples"][task.name()] = task.ValidationExamples();
    values["left_out_examples"][task.name()] = task.LeftOutExamples();
  }
  if (json) {
    fmt::print("{}\n", JsonText(values));
    return;
  }
  const ResultsRow row{.name = fmt::format("step {}", loaded.step),
                       .tasks = values["tasks"],
                       .average = values["average"]};
  fmt::print("{}\n{}", loaded.path.string(), ResultsTable({&row, 1}));
  for (const TaskData& task : tasks) {
    if (!IsJudged(task)) continue;
    fmt::print("{}: {}{}\n", task.name(), Counted(task.ValidationExamples(), "example"),
               LeftOutText(task.LeftOutExamples(), "evaluation.examples"));
  }
}

// Judges the model on the validation splits of its tasks, as finetuning does.
void EvaluateTasks(const LoadedModel& loaded, const EvalOptions& options, Communicator& ranks,
                   Watchdog& watchdog) {
  const bool is_chief = ranks.rank() == 0;
  const std::vector<TaskData> tasks = OpenTasks(loaded, ranks, watchdog);
  if (std::ranges::none_of(tasks, IsJudged)) FailWithoutSplit(TaskSplit::Use::kValidation);
  std::optional<Progress> progress;
  if (is_chief) progress.emplace(ProgressOptions{});
  Answerer answerer(loaded.replica->trained(), *loaded.tokenizer, loaded.config, tasks, ranks,
                    [&](const AnswerProgress& now) {
                      watchdog.Alive();
                      if (!progress) return;
                      progress->Evaluating(now.task.traits().name, now.done, now.total,
                                           now.seconds);
                    });
  const Watchdog::Phase phase(watchdog, RunPhase::kEvaluation, loaded.step);
  TaskResults results = ResultsOf(tasks);
  for (const TaskData& task : tasks) {
    if (!IsJudged(task)) continue;
    TaskEvaluator evaluator(task, answerer, [](int64_t) { return true; });
    evaluator.Evaluate(loaded.step, KeepAlive(watchdog));
    results.Add(loaded.step, evaluator.result());
    if (!is_chief || options.predictions.empty()) continue;
    for (const auto& [name, answers] : evaluator.answers()) {
      StagePredictions(options.predictions, name, *task.task, answers).PutInPlace();
    }
  }
  progress.reset();
  if (is_chief) PrintTaskResults(loaded, tasks, results, options.json);
}

}  // namespace

Action SetUpEval(CLI::App& app) {
  const auto options = std::make_shared<EvalOptions>();
  options->checkpoint = AddCheckpointOptions(app);
  app.add_option("--predictions", options->predictions,
                 "Write the answers to the tasks' validation examples to this directory, one file "
                 "per split")
      ->type_name("DIR");
  app.add_flag("--json", options->json, "Print JSON");
  return [options] {
    return WithRanks("eval", [&](Communicator& ranks, Watchdog& watchdog) {
      const LoadedModel loaded = options->checkpoint->LoadOnRanks(kForGeneration, ranks, watchdog);
      const bool has_tasks = HasTasks(loaded.config.data());
      // Tasks have validation files of their own.
      if (!has_tasks) ValidateConfig(loaded.config, kForEvaluation);
      (has_tasks ? EvaluateTasks : EvaluateCorpus)(loaded, *options, ranks, watchdog);
      return ExitCode::kDone;
    });
  };
}

}  // namespace syntra
