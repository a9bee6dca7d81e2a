// The step line that people watch:
//
//   step 12,300/65,536 18.8% loss 2.713 (ema 2.741) |g| 0.61 lr 9.02e-03 tok/s 41.2k MFU 37.4% data
//   0.8% sync 6.1% mem 9.8G ETA 3h12m (Sat 14:05)
//
// in one line. On a terminal it is one live line, redrawn in place and clipped to the width.
// Elsewhere it is a line every log_every steps, or 30 s after the last one if steps are slow,
// without carriage returns. All decisions use the monotonic clock; wall time is only printed.
#pragma once

#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace syntra {

struct ProgressOptions {
  int64_t steps = 0;  // of the whole run
  int64_t log_every = 1;
  int64_t evaluate_every = 0;  // 0: only at the end
  int64_t save_every = 0;      // 0: only at the end
  double peak_flops = NAN;     // of all ranks together, per second; NaN: unknown, no MFU

  // The surroundings; what is not set is stderr, its terminal and the system's clocks.
  std::optional<bool> live;
  std::function<void(std::string_view)> write;
  std::function<double()> seconds;  // monotonic
  std::function<std::time_t()> wall_time;
  std::function<int()> columns;
};

struct StepProgress {
  int64_t step = 0;  // steps done, this one included
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  double tokens = 0;        // of this step, all ranks
  double flops = 0;         // of this step, all ranks, by the model's formula
  double seconds = 0;       // of this step, from its beginning to the next one's
  double data_seconds = 0;  // of those, waiting for data
  double sync_seconds = 0;  // of those, waiting for other ranks
};

// Rank 0 makes one.
class Progress {
 public:
  explicit Progress(ProgressOptions options);

  void Step(const StepProgress& step);
  // An evaluation or a save took so long; the ETA counts on as many more as the run will make.
  void Evaluated(double seconds) { evaluations_.Add(seconds); }
  void Saved(double seconds) { saves_.Add(seconds); }

  // Removes the live line, so that other text can be printed; the next step draws it again.
  void Clear();
  // Ends the live line for good.
  void Finish();

  // The line for the last step, without a line end.
  std::string Line() const;
  // Seconds to the end of the run, as far as can be known.
  double SecondsLeft() const;
  double TokensPerSecond() const;

 private:
  // Sums that forget: each step weighs 0.95 of the one after it.
  struct Recent {
    double value = 0;
    void Add(double x) { value = 0.95 * value + x; }
  };
  // The mean cost of something done every so many steps.
  struct Recurring {
    double seconds = 0;
    int64_t count = 0;
    void Add(double x) { seconds += x, ++count; }
    double Left(int64_t step, int64_t steps, int64_t every) const;
  };
  void Draw(bool final);

  ProgressOptions options_;
  StepProgress last_;
  Recent count_, seconds_, tokens_, flops_, data_seconds_, sync_seconds_;
  double loss_sum_ = 0, loss_weight_ = 0;
  Recurring evaluations_, saves_;
  double printed_at_ = 0;
  size_t drawn_ = 0;  // columns of the live line on the screen
};

}  // namespace syntra
