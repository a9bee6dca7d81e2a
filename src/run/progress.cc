// SPDX-License-Identifier: Apache-2.0
#include "run/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr double kLossDecay = 0.98;
constexpr double kPrintSeconds = 60;
constexpr double kRedrawSeconds = 0.1;

// "9.8G", "512M".
std::string PeakMemory() {
  const double mebibytes = static_cast<double>(PeakResidentBytes()) / 1048576;
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
  if (!options_.screen) options_.screen = &StderrLine();
  if (!options_.live) options_.live = IsTerminal(STDERR_FILENO);
  if (!options_.colored) options_.colored = WantsColor(STDERR_FILENO);
  if (!options_.seconds) options_.seconds = MonotonicSeconds;
  if (!options_.wall_time) options_.wall_time = [] { return std::time(nullptr); };
  if (!options_.columns) options_.columns = [] { return TerminalColumns(STDERR_FILENO); };
  printed_at_ = options_.seconds() - (*options_.live ? kRedrawSeconds : 0);
}

void Progress::Step(const StepProgress& step) {
  last_ = step;
  count_.Add(1);
  seconds_.Add(step.seconds);
  slots_.Add(step.slots);
  flops_.Add(step.flops);
  data_seconds_.Add(step.data_seconds);
  sync_seconds_.Add(step.sync_seconds);
  // A skipped step's loss would stay in the mean for ever.
  if (std::isfinite(step.loss)) {
    loss_sum_ = kLossDecay * loss_sum_ + step.loss;
    loss_weight_ = kLossDecay * loss_weight_ + 1;
  }
  const bool live = *options_.live, final = step.step >= options_.steps;
  const bool by_steps = !live && options_.log_every > 0;
  const bool due = by_steps ? step.step % options_.log_every == 0 : IsTime();
  // The last column stays free: writing there makes some terminals wrap.
  const int columns = live ? options_.columns() - 1 : std::numeric_limits<int>::max();
  if (final || due) Draw(Line(columns));
  if (final) options_.screen->Finish();
}

void Progress::Evaluating(const std::string& what, int64_t done, int64_t total, double seconds) {
  if (!IsTime()) return;
  const double rate = Ratio(static_cast<double>(done), seconds);
  const double left = Ratio(static_cast<double>(total - done), rate);
  const std::string line =
      fmt::format("evaluating {}  {}/{}  {:.1f}/s  ETA {}", what, WithThousands(done),
                  WithThousands(total), rate, HumanDuration(left));
  Draw(*options_.live ? FittingLine(line, options_.columns() - 1) : line);
}

bool Progress::IsTime() const {
  return options_.seconds() - printed_at_ >= (*options_.live ? kRedrawSeconds : kPrintSeconds);
}

void Progress::Draw(const std::string& line) {
  printed_at_ = options_.seconds();
  if (*options_.live) {
    options_.screen->Show(line);
  } else {
    options_.screen->Print(line + "\n");
  }
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

double Progress::TokensPerSecond() const { return Ratio(slots_.value, seconds_.value); }

std::vector<Progress::Field> Progress::Fields() const {
  const double left = SecondsLeft();
  const auto share = [](double part, double whole) { return 100 * Ratio(part, whole); };
  std::vector<Field> fields{{"ETA " + HumanDuration(left), 0}};
  if (std::isfinite(left)) {
    fields.push_back({fmt::format(" ({})", WhenText(options_.wall_time(), left)), 5});
  }
  const auto add = [&](int priority, const std::string& text) {
    fields.push_back({"  " + text, priority});
  };
  add(1, fmt::format("step {}/{} {:.1f}%", WithThousands(last_.step), WithThousands(options_.steps),
                     share(last_.step, options_.steps)));
  add(2, fmt::format("loss {:.3f}", last_.loss));
  fields.push_back(
      {fmt::format(" (ema {:.3f})", loss_weight_ > 0 ? loss_sum_ / loss_weight_ : last_.loss), 6});
  add(3, fmt::format("tok/s {}", HumanCount(TokensPerSecond())));
  if (!std::isnan(options_.peak_flops)) {
    add(4, fmt::format("MFU {:.1f}%", share(flops_.value, seconds_.value * options_.peak_flops)));
  }
  add(7, fmt::format("|g| {:.3g}", last_.grad_norm));
  add(8, fmt::format("lr {:.2e}", last_.learning_rate));
  add(10, fmt::format("data {:.1f}%", share(data_seconds_.value, seconds_.value)));
  add(9, fmt::format("sync {:.1f}%", share(sync_seconds_.value, seconds_.value)));
  add(11, fmt::format("mem {}", PeakMemory()));
  return fields;
}

std::string Progress::Line(int columns) const {
  std::vector<Field> fields = Fields();
  const auto width = [&] {
    size_t sum = 0;
    for (const Field& field : fields) sum += field.text.size();
    return sum;
  };
  while (fields.size() > 1 && width() > static_cast<size_t>(std::max(columns, 0))) {
    fields.erase(std::ranges::max_element(fields, {}, &Field::priority));
  }
  std::string line;
  for (const Field& field : fields) {
    const bool bold = *options_.colored && field.priority == 0;
    line += bold ? "\033[1m" + field.text + "\033[0m" : field.text;
  }
  return line;
}

}  // namespace syntra
