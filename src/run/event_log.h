// SPDX-License-Identifier: Apache-2.0
// events.jsonl: what happened to a run besides its steps, one JSON object a line. Unlike
// metrics.jsonl it is never cut back when the run continues: it also tells of what was lost.
//
//   event       what it says besides its step and time
//   start       a process begins or continues the run at this step: its ranks and host; seconds
//               from the process's start to here; for a run that continues, lost_steps and
//               lost_seconds: what had been trained past this step, and idle_seconds: from the last
//               sign of the process before to this one's start
//   save        a checkpoint is there: the seconds that training waited for it
//   save_failed the same and its error
//   evaluation  seconds
//   rollback    the run has diverged and goes back to the checkpoint of the step `to`; a start
//               follows
//   skip        the step was not finite and changed nothing
//   stop, done  the process ends in order: the run was asked to stop, or all is done
//   failed      the process ends with an error: its code and text
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "run/json_lines.h"

namespace syntra {

class EventLog {
 public:
  // Appends to `path`, but first removes a last line that a crash cut short. As with MetricsLog, a
  // file that cannot be written never stops training.
  explicit EventLog(const Path& path, std::function<WallClock::time_point()> now = WallClock::now);

  // The time of the last line that was there, in seconds since 1970; NaN if there was none.
  double last_time() const { return lines_.last_time; }

  // How often each event was in the file when it was opened.
  const std::map<std::string, int64_t>& earlier() const { return earlier_; }

  // A line: {"step":12,"time":"2026-11-20T14:05:09.123Z","event":"save","seconds":0.2}.
  void Write(const std::string& event, int64_t step, const Json& facts = Json::object());
  // Makes what was written survive a crash.
  void Sync() const { lines_.file.Sync(); }

 private:
  void CountEarlier(std::string_view line);

  std::function<WallClock::time_point()> now_;
  std::map<std::string, int64_t> earlier_;
  LineAppender lines_;
};

struct RunEvent {
  std::string name;
  int64_t step = 0;
  double time = 0;  // seconds since 1970; NaN if it is not known
  Json facts;       // the whole line

  double seconds(const char* name = "seconds") const;  // 0 if the event has none
};

// In the order in which they happened; none if there is no such file.
std::vector<RunEvent> ReadEvents(const Path& path);

}  // namespace syntra
