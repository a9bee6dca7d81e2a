// SPDX-License-Identifier: Apache-2.0
// The history of a run, as metrics.jsonl tells it.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/plot.h"
#include "run/json_lines.h"
#include "run/step_phases.h"

namespace syntra {

// The value of an evaluation: nats a target token.
inline constexpr char kLogPerplexityValue[] = "validation_log_perplexity";

// Throws Error(kConfig) that says that `directory` is not that of a run, since it has no `missing`,
// or that its run still prepares.
[[noreturn]] void FailNoRun(const Path& directory, const std::string& missing);

using Curve = std::vector<PlotPoint>;  // by step

struct RunHistory {
  int64_t step = 0;        // the last one that was trained
  Curve loss, validation;  // in nats a target token
  // By name: metrics of tasks (cola/matthews), and the other values of evaluations and steps
  // (cola_invalid, grad_norm, learning_rate, seconds, tokens_per_second).
  std::map<std::string, Curve> metrics, curves;
  double seconds = 0;     // of all steps together
  PhaseSeconds phases{};  // of `seconds`, by phase; 0 if metrics.jsonl does not have them
  double tokens_per_second = 0, mfu = 0;  // over all steps; MFU is NaN where it is not known
  int64_t skipped = 0;                    // steps that were not finite
  double skipped_seconds = 0;             // of `seconds`, in skipped steps
  double last_time = NAN;                 // of the last line, in seconds since 1970
  int64_t damaged_lines = 0;              // that are not JSON with a step, and tell nothing
  // The rank that the others waited for in the last step, -1 if there is one rank; the seconds
  // until it was ready to add gradients, and the median of all ranks.
  int slowest_rank = -1;
  double slowest_seconds = NAN, median_seconds = NAN;
};

// The curve of this name in RunHistory::metrics or curves; empty if there is none.
const Curve& CurveNamed(const std::map<std::string, Curve>& curves, std::string_view name);

// Reads the history of a run that may go on meanwhile.
class HistoryReader {
 public:
  // Throws Error(kConfig) if there is no such file.
  explicit HistoryReader(const Path& metrics);
  // Takes in the lines that have come since the last call.
  void Update();
  const RunHistory& history() const { return history_; }

 private:
  // The curve of a value of evaluations.
  Curve& CurveOf(const std::string& name);
  void AddStep(int64_t step, const Json& line);
  void AddTimes(const Json& line, double seconds);

  LineFollower lines_;
  RunHistory history_;
  double tokens_ = 0, used_ = 0;  // `used_`: MFU times seconds
};

// All of it. Throws as HistoryReader.
RunHistory ReadRunHistory(const Path& metrics);

}  // namespace syntra
