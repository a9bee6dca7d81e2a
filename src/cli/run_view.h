// SPDX-License-Identifier: Apache-2.0
// The state of a run, on one screen of a terminal.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_report.h"
#include "run/json_lines.h"

namespace syntra {

// The facts about a run that `watch` shows.
struct WatchedRun {
  RunReport report;             // without history and configuration before the first step
  std::string holder;           // the process that runs it (RunLock::HolderOf); "": none
  std::deque<std::string> log;  // the last lines of rank 0
};

// Follows a run that may go on meanwhile. Reads only new lines, but begins anew when a process of
// the run has started, since that may cut the metrics.
class RunWatcher {
 public:
  // Throws Error(kConfig) if the directory is not that of a run.
  explicit RunWatcher(const Path& directory);
  const WatchedRun& Look();

 private:
  void LookAtHistory();
  void LookAtLog();

  WatchedRun run_;
  std::optional<HistoryReader> history_;
  std::optional<LineFollower> log_;
  size_t starts_ = 0;  // processes of the run that `history_` knows of
};

struct ViewOptions {
  int columns = 80, rows = 24;
  bool braille = true, colored = false;
  double now = 0;  // seconds since 1970
};

// At most `rows` lines of at most `columns` characters. If there are few rows, the log is left out
// first, then the curve.
std::vector<std::string> ViewOf(const WatchedRun& run, const ViewOptions& options);

}  // namespace syntra
