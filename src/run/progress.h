// SPDX-License-Identifier: Apache-2.0
// The step line that people watch:
//
//   ETA 3h12m (Sat 14:05)  step 12,300/65,536 18.8%  loss 2.713 (ema 2.741)  tok/s 41.2k
//   MFU 37.4%  |g| 0.61  lr 9.02e-03  data 0.8%  sync 6.1%  mem 9.8G
//
// in one line. On a terminal it is one live line, redrawn in place; where it does not fit, what
// matters least is left out. Elsewhere it is a whole line a minute, or every log_every steps,
// without carriage returns. All decisions use the monotonic clock; wall time is only printed.
#pragma once

#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/terminal.h"

namespace syntra {

struct ProgressOptions {
  int64_t steps = 0;           // of the whole run
  int64_t log_every = 0;       // steps between lines where they are not live; 0: one a minute
  int64_t evaluate_every = 0;  // 0: only at the end
  int64_t save_every = 0;      // 0: only at the end
  double peak_flops = NAN;     // of all ranks together, per second; NaN: unknown, no MFU

  // The surroundings; what is not set is stderr, its terminal and the system's clocks.
  StatusLine* screen = nullptr;
  std::optional<bool> live, colored;
  std::function<double()> seconds;  // monotonic
  std::function<std::time_t()> wall_time;
  std::function<int()> columns;
};

struct StepProgress {
  int64_t step = 0;  // steps done, this one included
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  double slots = 0;         // of inputs and targets, of this step, all ranks, padding included
  double flops = 0;         // of this step, all ranks, by the model's formula
  double seconds = 0;       // of this step alone, without saves and evaluations
  double data_seconds = 0;  // of `seconds`, waiting for data
  double sync_seconds = 0;  // of `seconds`, waiting for other ranks
};

// Rank 0 makes one.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  // Leaves the line on the screen; what is printed next stands below it.
  ~Progress() { options_.screen->Finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Step(const StepProgress& step);
  // An evaluation of `what` has done `done` of `total` examples in `seconds`: a line like that of
  // the steps, in its place.
  void Evaluating(const std::string& what, int64_t done, int64_t total, double seconds);
  // Tells how long an evaluation or a save took. The ETA includes all that the run will still make.
  void Evaluated(double seconds) { evaluations_.Add(seconds); }
  void Saved(double seconds) { saves_.Add(seconds); }

  // The line for the last step, without a line end; at most `columns` wide, if one field fits.
  std::string Line(int columns) const;
  // Seconds to the end of the run, as far as can be known.
  double SecondsLeft() const;
  // Padding counts, as in metrics.jsonl.
  double TokensPerSecond() const;

 private:
  // A sum that forgets: each step weighs 0.95 times as much as the one after it.
  struct Recent {
    double value = 0;
    void Add(double x) { value = 0.95 * value + x; }
  };
  // The mean cost of something that is done at regular intervals of steps.
  struct Recurring {
    double seconds = 0;
    int64_t count = 0;
    void Add(double x) { seconds += x, ++count; }
    double Left(int64_t step, int64_t steps, int64_t every) const;
  };
  // A part of the line. If the parts do not all fit, the last of `priority` are left out first.
  struct Field {
    std::string text;
    int priority;  // 0 is the first
  };
  std::vector<Field> Fields() const;
  bool IsTime() const;
  void Draw(const std::string& line);

  ProgressOptions options_;
  StepProgress last_;
  Recent count_, seconds_, slots_, flops_, data_seconds_, sync_seconds_;
  double loss_sum_ = 0, loss_weight_ = 0;
  Recurring evaluations_, saves_;
  double printed_at_ = 0;
};

}  // namespace syntra
