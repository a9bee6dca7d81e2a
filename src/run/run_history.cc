// SPDX-License-Identifier: Apache-2.0
#include "run/run_history.h"

#include <limits>

#include "base/directories_below.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "run/metrics_log.h"

namespace syntra {
namespace {

const Path& RequireMetrics(const Path& metrics) {
  if (!Exists(metrics)) FailNoRun(metrics.parent_path(), metrics.filename().string());
  return metrics;
}

// The directories of runs in that of a comparison, or of several seeds, or of both.
std::vector<std::string> RunsIn(const Path& directory) {
  return DirectoriesBelow(directory,
                          [](const Path& each) { return Exists(each / "metrics.jsonl"); });
}

}  // namespace

void FailNoRun(const Path& directory, const std::string& missing) {
  RequireExists(directory);
  const std::vector<std::string> inside = RunsIn(directory);
  if (inside.empty() && Exists(directory / "log" / RankLogName(0))) {
    Fail(ExitCode::kConfig,
         "the run in {} has no {} yet, since it has not begun to train; to see what it does: "
         "syntra watch {}",
         directory.string(), missing, ShellWord(directory.string()));
  }
  Fail(ExitCode::kConfig, "{} is not the directory of a run: it has no {}; {}", directory.string(),
       missing,
       inside.empty() ? "name the directory given as train.directory"
                      : "it holds those of several: " + JoinFirst(inside, 4));
}

const Curve& CurveNamed(const std::map<std::string, Curve>& curves, std::string_view name) {
  static const Curve kNone;
  const auto it = curves.find(std::string(name));
  return it == curves.end() ? kNone : it->second;
}

HistoryReader::HistoryReader(const Path& metrics) : lines_(RequireMetrics(metrics)) {}

void HistoryReader::Update() {
  history_.damaged_lines += VisitLines(lines_, [&](int64_t step, const Json& line) {
    history_.last_time = TimeOf(line);
    if (line.contains("loss")) return AddStep(step, line);
    for (const auto& [name, value] : line.items()) {
      if (name == "step" || name == "time") continue;
      CurveOf(name).push_back({static_cast<double>(step), NumberIn(line, name)});
    }
  });
}

Curve& HistoryReader::CurveOf(const std::string& name) {
  if (name == kLogPerplexityValue) return history_.validation;
  return TaskMetricOf(name) ? history_.metrics[name] : history_.curves[name];
}

void HistoryReader::AddStep(int64_t step, const Json& line) {
  const auto x = static_cast<double>(step);
  history_.step = step;
  history_.loss.push_back({x, NumberIn(line, "loss")});
  for (const char* name : {"grad_norm", "learning_rate", "seconds", "tokens_per_second"}) {
    history_.curves[name].push_back({x, NumberIn(line, name)});
  }
  const double seconds = NumberIn(line, "seconds");
  if (std::isfinite(seconds)) AddTimes(line, seconds);
  for (size_t i = 0; i < kStepPhases.size(); ++i) {
    const double of_phase = NumberIn(line, SecondsField(kStepPhases[i]));
    if (std::isfinite(of_phase)) history_.phases[i] += of_phase;
  }
  if (NumberIn(line, "skipped") > 0) ++history_.skipped;
  if (line.contains("slowest_rank")) {
    const int64_t rank = IntegerIn(line, "slowest_rank", -1);
    history_.slowest_rank = rank <= std::numeric_limits<int>::max() ? static_cast<int>(rank) : -1;
    history_.slowest_seconds = NumberIn(line, "slowest_rank_seconds");
    history_.median_seconds = NumberIn(line, "median_rank_seconds");
  }
}

void HistoryReader::AddTimes(const Json& line, double seconds) {
  history_.seconds += seconds;
  tokens_ += NumberIn(line, "tokens_per_second") * seconds;
  used_ += NumberIn(line, "mfu") * seconds;
  if (NumberIn(line, "skipped") > 0) history_.skipped_seconds += seconds;
  if (history_.seconds == 0) return;
  history_.tokens_per_second = tokens_ / history_.seconds;
  history_.mfu = used_ / history_.seconds;
}

RunHistory ReadRunHistory(const Path& metrics) {
  HistoryReader reader(metrics);
  reader.Update();
  return reader.history();
}

}  // namespace syntra
