#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/text.h"

namespace syntra {
namespace {

constexpr double kLossDecay = 0.98;
constexpr double kPrintSeconds = 30;
constexpr double kRedrawSeconds = 0.1;

bool StderrIsTerminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && kind && std::string_view(kind) != "dumb";
}

int StderrColumns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void WriteToStderr(std::string_view text) {
  // A closed stderr must not end a run.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

double MonotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Largest resident memory of this process so far: "9.8G", "512M".
std::string PeakMemory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double mebibytes = usage.ru_maxrss / 1024.0;
  return mebibytes < 1024 ? fmt::format("{:.0f}M", mebibytes)
                          : fmt::format("{:.1f}G", mebibytes / 1024);
}

// "Sat 14:05" within a week, else "Jan 31 14:05". Not strftime: its names depend on the locale.
std::string WhenText(std::time_t now, double seconds_left) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t end = now + static_cast<std::time_t>(std::llround(seconds_left));
  std::tm local = {};
  localtime_r(&end, &local);
  const std::string day = seconds_left < 6 * 86400
                              ? kDays[local.tm_wday]
                              : fmt::format("{} {}", kMonths[local.tm_mon], local.tm_mday);
  return fmt::format("{} {:02}:{:02}", day, local.tm_hour, local.tm_min);
}

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.live) options_.live = !options_.write && StderrIsTerminal();
  if (!options_.write) options_.write = WriteToStderr;
  if (!options_.seconds) options_.seconds = MonotonicSeconds;
  if (!options_.wall_time) options_.wall_time = [] { return std::time(nullptr); };
  if (!options_.columns) options_.columns = StderrColumns;
  printed_at_ = options_.seconds() - (*options_.live ? kRedrawSeconds : 0);
}

void Progress::Step(const StepProgress& step) {
  last_ = step;
  count_.Add(1);
  seconds_.Add(step.seconds);
  tokens_.Add(step.tokens);
  flops_.Add(step.flops);
  data_seconds_.Add(step.data_seconds);
  sync_seconds_.Add(step.sync_seconds);
  // A skipped step's loss would stay in the mean for ever.
  if (std::isfinite(step.loss)) {
    loss_sum_ = kLossDecay * loss_sum_ + step.loss;
    loss_weight_ = kLossDecay * loss_weight_ + 1;
  }
  const bool final = step.step >= options_.steps;
  const double waited = options_.seconds() - printed_at_;
  const bool due = *options_.live ? waited >= kRedrawSeconds
                                  : step.step % options_.log_every == 0 || waited >= kPrintSeconds;
  if (final || due) Draw(final);
}

void Progress::Draw(bool final) {
  printed_at_ = options_.seconds();
  std::string line = Line();
  if (!*options_.live) {
    options_.write(line + "\n");
    return;
  }
  // The last column stays free: writing there makes some terminals wrap.
  line.resize(std::min<size_t>(line.size(), std::max(options_.columns() - 1, 1)));
  const size_t length = line.size();
  line.resize(std::max(length, drawn_), ' ');
  drawn_ = length;
  options_.write("\r" + line);
  if (final) Finish();
}

void Progress::Clear() {
  if (drawn_ > 0) options_.write("\r" + std::string(drawn_, ' ') + "\r");
  drawn_ = 0;
}

void Progress::Finish() {
  if (drawn_ > 0) options_.write("\n");
  drawn_ = 0;
}

double Progress::Recurring::Left(int64_t step, int64_t steps, int64_t every) const {
  if (count == 0 || step >= steps) return 0;
  int64_t times = 1;
  if (every > 0) times = steps / every - step / every + (steps % every != 0);
  return times * seconds / count;
}

double Progress::SecondsLeft() const {
  if (count_.value == 0) return std::numeric_limits<double>::infinity();
  const int64_t steps = options_.steps;
  return std::max<int64_t>(steps - last_.step, 0) * seconds_.value / count_.value +
         evaluations_.Left(last_.step, steps, options_.evaluate_every) +
         saves_.Left(last_.step, steps, options_.save_every);
}

double Progress::TokensPerSecond() const { return Ratio(tokens_.value, seconds_.value); }

std::string Progress::Line() const {
  const double left = SecondsLeft();
  std::string line =
      fmt::format("step {}/{} {:.1f}% loss {:.3f} (ema {:.3f}) |g| {:.3g} lr {:.2e} tok/s {}",
                  WithThousands(last_.step), WithThousands(options_.steps),
                  100 * Ratio(last_.step, options_.steps), last_.loss,
                  loss_weight_ > 0 ? loss_sum_ / loss_weight_ : last_.loss, last_.grad_norm,
                  last_.learning_rate, HumanCount(TokensPerSecond()));
  if (!std::isnan(options_.peak_flops)) {
    line += fmt::format(" MFU {:.1f}%",
                        100 * Ratio(flops_.value, seconds_.value * options_.peak_flops));
  }
  line += fmt::format(
      " data {:.1f}% sync {:.1f}% mem {} ETA {}", 100 * Ratio(data_seconds_.value, seconds_.value),
      100 * Ratio(sync_seconds_.value, seconds_.value), PeakMemory(), HumanDuration(left));
  if (std::isfinite(left)) line += fmt::format(" ({})", WhenText(options_.wall_time(), left));
  return line;
}

}  // namespace syntra
