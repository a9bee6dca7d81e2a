// metrics.jsonl: one JSON object a line, for programs. Fields come in a fixed order; a value that
// is not finite is null, since JSON has no other way to say it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "train/append_file.h"

namespace syntra {

using NamedValues = std::vector<std::pair<std::string, double>>;

struct StepMetrics {
  int64_t step = 0;
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;
  double seconds = 0;  // of this step
  NamedValues extras;
};

class MetricsLog {
 public:
  // Appends to `path`. First drops the lines of steps after `resumed_step`, which will be trained
  // again, the evaluation at that step, which will be made again, and a last line that a crash cut
  // short. A file that cannot be written is warned about
  // once and never stops training.
  MetricsLog(const Path& path, int64_t resumed_step);

  void Write(const StepMetrics& metrics);
  // A line of `step` and these values only: an evaluation.
  void Write(int64_t step, const NamedValues& values);
  // What was written survives a crash.
  void Sync() { file_.Sync(); }

 private:
  AppendFile file_;
};

}  // namespace syntra
