// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: one JSON object a line, for programs: the step, the time and named values in the
// order in which they are given. A value that is not finite is null, since JSON has no other way
// to say it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/named_value.h"
#include "run/json_lines.h"

namespace syntra {

// A value of a task is named "cola/matthews". Nothing else has a slash in its name, nor has a task.
struct TaskMetric {
  std::string_view task, value;
};
std::string MetricKey(std::string_view task, std::string_view value);
// The two parts of `name`, which must outlive them; nothing if it is not that of a task's value.
std::optional<TaskMetric> TaskMetricOf(std::string_view name);

// Steps that were trained and logged, and are trained again because no checkpoint has them.
struct LostSteps {
  int64_t steps = 0;
  double seconds = 0;
};

class MetricsLog {
 public:
  // Appends to `path`, but first removes what will be written again, and a last line that a crash
  // cut short. A file that cannot be written is warned about once and never stops training.
  MetricsLog(const Path& path, const ResumePoint& resumed,
             std::function<WallClock::time_point()> now = WallClock::now);

  // The steps that were removed.
  const LostSteps& lost() const { return lost_; }
  // Whether the evaluation of `step` was removed, which the run makes again where it continues.
  bool repeats_evaluation(int64_t step) const { return repeated_ == step; }
  // The time of the last line that was there, in seconds since 1970; NaN if there was none.
  double last_time() const { return lines_.last_time; }

  // A line: {"step":12,"time":"2026-11-20T14:05:09.123Z",...}, the time in UTC.
  void Write(int64_t step, const NamedValues& values);
  // Makes what was written survive a crash.
  void Sync() const { lines_.file.Sync(); }

 private:
  void CountLost(std::string_view line);

  std::function<WallClock::time_point()> now_;
  LostSteps lost_;
  int64_t repeated_ = -1;  // the step of the evaluation that is made again; -1: there is none
  LineAppender lines_;
};

}  // namespace syntra
