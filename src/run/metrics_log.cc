// SPDX-License-Identifier: Apache-2.0
#include "run/metrics_log.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace syntra {
namespace {

constexpr char kTaskEnd = '/';

// Whether a line holds an evaluation: validation_log_perplexity, or a value of a task.
bool IsEvaluation(std::string_view line) {
  return line.find("\"validation_") != line.npos || line.find(kTaskEnd) != line.npos;
}

// A line that means nothing, perhaps a user's, stays.
bool Stays(const ResumePoint& resumed, std::string_view line) {
  const std::optional<int64_t> step = StepOf(line);
  return !step || *step < (IsEvaluation(line) ? resumed.first_evaluation() : resumed.first_step());
}

void AddField(std::string* line, std::string_view name, double value) {
  fmt::format_to(std::back_inserter(*line), ",{}:", JsonText(name));
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(*line), "{}", value);
  } else {
    *line += "null";
  }
}

}  // namespace

std::string MetricKey(std::string_view task, std::string_view value) {
  return fmt::format("{}{}{}", task, kTaskEnd, value);
}

std::optional<TaskMetric> TaskMetricOf(std::string_view name) {
  const size_t end = name.find(kTaskEnd);
  if (end == name.npos) return std::nullopt;
  return TaskMetric{name.substr(0, end), name.substr(end + 1)};
}

MetricsLog::MetricsLog(const Path& path, const ResumePoint& resumed,
                       std::function<WallClock::time_point()> now)
    : now_(std::move(now)),
      lines_(
          path, [&](std::string_view line) { return Stays(resumed, line); },
          [&](std::string_view line) {
            if (IsEvaluation(line) && StepOf(line) == resumed.step) repeated_ = resumed.step;
            CountLost(line);
          }) {}

void MetricsLog::CountLost(std::string_view line) {
  const Json json = ParseLine(line);
  if (!json.contains("loss")) return;
  const double seconds = NumberIn(json, "seconds");
  ++lost_.steps;
  if (std::isfinite(seconds)) lost_.seconds += seconds;
}

void MetricsLog::Write(int64_t step, const NamedValues& values) {
  std::string line = LineStart(step, now_());
  for (const auto& [name, value] : values) AddField(&line, name, value);
  line += "}\n";
  lines_.file.Append(line);
}

}  // namespace syntra
