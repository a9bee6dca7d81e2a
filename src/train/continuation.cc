// SPDX-License-Identifier: Apache-2.0
#include "train/continuation.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/log.h"
#include "base/text.h"
#include "config/change.h"
#include "data/example.h"
#include "optim/schedule.h"
#include "tasks/task.h"

namespace syntra {
namespace {

constexpr size_t kNamedAtMost = 10;

ConfigChanges ChangesSince(const CheckpointSummary& checkpoint, const Config& config) {
  return ChangesBetween(ConfigOf(checkpoint.path, checkpoint.info), config);
}

// A run that has begun takes nothing more from checkpoint.initial; its command may leave it out. A
// start that is not there is a mistake in its name.
std::string OtherStart(const CheckpointSummary& checkpoint, const Config& config) {
  const std::string& now = config.checkpoint().initial();
  const std::string then = ConfigOf(checkpoint.path, checkpoint.info).checkpoint().initial();
  if (now.empty() || (!then.empty() && IsSamePlace(then, now))) return "";
  if (!Exists(now)) {
    Fail(ExitCode::kConfig,
         "checkpoint.initial {} does not exist; the run started from {}, and continues without "
         "naming it",
         now, then.empty() ? "no other model" : then);
  }
  return fmt::format("checkpoint.initial: {} -> {}", then.empty() ? "none" : then, now);
}

// "toy (toy.tsv)"; "" if the task has no files for this use.
std::string WithFiles(const Task& task, TaskSplit::Use use, const Path& directory) {
  std::vector<std::string> files;
  for (const TaskSplit& split : task.traits().splits) {
    if (split.use != use) continue;
    for (const Path& file : FilesOf(split, directory)) files.push_back(file.string());
  }
  if (files.empty()) return "";
  return fmt::format("{} ({})", task.traits().name, Join(files, ", "));
}

// The tasks whose own digests changed (FinetuningData::task_digests). Early checkpoints do not have
// these, so it may be any.
std::string OtherTasks(const DataConfig& data, TaskSplit::Use use, const std::string& then_digests,
                       const std::string& now_digests) {
  const std::vector<std::string> then = Split(then_digests, '\n'), now = Split(now_digests, '\n');
  std::vector<std::string> all, changed;
  for (const std::unique_ptr<Task>& task : MakeTasks(data)) {
    const std::string text = WithFiles(*task, use, data.directory());
    if (text.empty()) continue;
    all.push_back(text);
    const bool is_other = std::ranges::any_of(now, [&](const std::string& digest) {
      return digest.substr(digest.find(' ') + 1) == task->traits().name &&
             std::ranges::count(then, digest) == 0;
    });
    if (is_other) changed.push_back(text);
  }
  const bool knows = then.size() > 1 && !changed.empty();
  return fmt::format("{}{}", knows || all.size() == 1 ? "" : "one of the tasks ",
                     Join(knows ? changed : all, ", "));
}

// What data_digest is of.
std::string NameOfData(const CheckpointSummary& checkpoint, const RunIdentity& identity) {
  const DataConfig& data = identity.config.data();
  if (!HasTasks(data)) return "the text of data.train";
  return "the training data of " +
         OtherTasks(data, TaskSplit::Use::kTrain,
                    AttributeOrNone(checkpoint.info, kTaskDigestsAttribute), identity.task_digests);
}

// Why other examples are read: fewer or more of the same files are others, too.
std::string OtherValidation(const CheckpointSummary& checkpoint, const RunIdentity& identity) {
  const int64_t before = ConfigOf(checkpoint.path, checkpoint.info).evaluation().examples();
  const int64_t now = identity.config.evaluation().examples();
  if (before != now) return fmt::format("evaluation.examples: {} -> {}", before, now);
  const DataConfig& data = identity.config.data();
  if (!HasTasks(data)) return "the data changed";
  return fmt::format("the data of {} changed",
                     OtherTasks(data, TaskSplit::Use::kValidation,
                                AttributeOrNone(checkpoint.info, kTaskValidationAttribute),
                                identity.task_validation_digests));
}

void WarnOfOtherValidation(const CheckpointSummary& checkpoint, const RunIdentity& identity) {
  const std::string then = AttributeOrNone(checkpoint.info, kValidationAttribute);
  if (then.empty() || identity.validation_digest.empty() || then == identity.validation_digest) {
    return;
  }
  Log().warn(
      "{} was evaluated on other validation examples ({}); what they give cannot be compared",
      checkpoint.path.string(), OtherValidation(checkpoint, identity));
}

double NextRate(const CheckpointSummary& checkpoint, const Config& config) {
  return LearningRate(config.optimizer().schedule(), checkpoint.info.step, config.train().steps());
}

}  // namespace

bool IsSamePlace(const std::string& then, const std::string& now) {
  const auto place = [](const Path& path) { return (path / "").lexically_normal(); };
  const Path before = place(then), after = place(std::filesystem::absolute(now));
  if (place(std::filesystem::absolute(then)) == after) return true;
  return before.is_relative() && ("/" + after.string()).ends_with("/" + before.string());
}

bool HasShards(const CheckpointSummary& checkpoint, const std::string& digest) {
  return !digest.empty() && (digest == AttributeOrNone(checkpoint.info, kShardsAttribute) ||
                             digest == AttributeOrNone(checkpoint.info, kDataAttribute));
}

void CheckContinues(const CheckpointSummary& checkpoint, const RunIdentity& identity) {
  std::vector<std::string> differences = ChangesSince(checkpoint, identity.config).refused;
  const std::string other_start = OtherStart(checkpoint, identity.config);
  if (!other_start.empty()) differences.push_back(other_start);
  // `what` names it; the files of tasks are looked for only where there is something to name.
  const auto compare = [&](const char* name, const std::string& now, const auto& what) {
    const std::string& then = AttributeOf(checkpoint.path, checkpoint.info, name);
    if (!now.empty() && then != now) {
      differences.push_back(fmt::format("{} changed: digest {} -> {}", what(), then, now));
    }
  };
  compare(kTokenizerAttribute, identity.tokenizer_identity, [] { return "the tokenizer"; });
  if (!HasShards(checkpoint, identity.shards_digest)) {
    compare(kDataAttribute, identity.data_digest, [&] { return NameOfData(checkpoint, identity); });
  }
  if (!differences.empty()) {
    Fail(ExitCode::kCheckpoint,
         "{} was made with other settings or data, so the run cannot continue from it:\n  {}\n"
         "Restore them, choose another train.directory, or start from its parameters with "
         "checkpoint.initial",
         checkpoint.path.string(), Join(differences, "\n  "));
  }
  const int64_t steps = identity.config.train().steps();
  if (checkpoint.info.step > steps) {
    Fail(ExitCode::kConfig,
         "train.steps is {}, but {} steps of this run are done ({}); set train.steps to {} or more "
         "to go on, or choose another train.directory",
         steps, checkpoint.info.step, checkpoint.path.string(), checkpoint.info.step);
  }
  WarnOfOtherValidation(checkpoint, identity);
}

std::string ScheduleChange(const CheckpointSummary& checkpoint, const Config& config) {
  const std::vector<std::string> fields = ChangesSince(checkpoint, config).scheduled;
  if (fields.empty()) return "";
  const std::string changes = Join(fields, ", ");
  if (checkpoint.info.step >= config.train().steps()) return changes + "; no step is left";
  const Config then = ConfigOf(checkpoint.path, checkpoint.info);
  const double before = NextRate(checkpoint, then), now = NextRate(checkpoint, config);
  return fmt::format("{}; {}", changes,
                     before == now
                         ? fmt::format("the learning rate of the next step stays {:.4g}", now)
                         : fmt::format("the learning rate of the next step changes from {:.4g} to "
                                       "{:.4g}",
                                       before, now));
}

std::string OtherResults(const CheckpointSummary& checkpoint, const Config& config) {
  ConfigChanges changes = ChangesSince(checkpoint, config);
  std::vector<std::string> deciding = std::move(changes.scheduled);
  std::ranges::move(changes.judging, std::back_inserter(deciding));
  return JoinFirst(deciding, kNamedAtMost);
}

std::string OtherRates(const RunHistory& history, const Config& config) {
  constexpr double kTolerance = 1e-9;  // the cosines of libraries differ in their last bits
  int64_t first = 0, last = 0;
  for (const PlotPoint& point : CurveNamed(history.curves, "learning_rate")) {
    const int64_t step = std::llround(point.x);
    const double rate =
        LearningRate(config.optimizer().schedule(), step - 1, config.train().steps());
    // Early versions did not record it.
    if (std::isnan(point.y) || std::fabs(point.y - rate) <= kTolerance * rate) continue;
    if (first == 0) first = step;
    last = step;
  }
  if (last == 0) return "";
  return fmt::format(
      "steps {} to {} had other learning rates than train.steps and optimizer.schedule now give",
      WithThousands(first), WithThousands(last));
}

std::string OtherChanges(const CheckpointSummary& checkpoint, const Config& config) {
  ConfigChanges changes = ChangesSince(checkpoint, config);
  std::vector<std::string> others = std::move(changes.judging);
  std::ranges::move(changes.free, std::back_inserter(others));
  return JoinFirst(others, kNamedAtMost);
}

}  // namespace syntra
