// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: one JSON object a line, for programs: the step, the time and named values in the
// order in which they are given. A value that is not finite is null, since JSON has no other way
// to say it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/named_value.h"
#include "train/append_file.h"

namespace syntra {

class MetricsLog {
 public:
  using Clock = std::chrono::system_clock;

  // Appends to `path`, but first removes what will be written again: the lines of steps after
  // `resumed_step`, the evaluation at that step, and a last line that a crash cut short. A file
  // that cannot be written is warned about once and never stops training.
  MetricsLog(const Path& path, int64_t resumed_step,
             std::function<Clock::time_point()> now = Clock::now);

  // A line: {"step":12,"time":"2026-11-20T14:05:09.123Z",...}, the time in UTC.
  void Write(int64_t step, const NamedValues& values);
  // What was written survives a crash.
  void Sync() { file_.Sync(); }

 private:
  std::function<Clock::time_point()> now_;
  AppendFile file_;
};

}  // namespace syntra
