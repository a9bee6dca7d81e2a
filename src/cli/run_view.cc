// SPDX-License-Identifier: Apache-2.0
#include "cli/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "run/run_history.h"
#include "run/run_lock.h"
#include "run/run_status.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

constexpr size_t kLogLines = 6;
constexpr size_t kRecentSteps = 100;
constexpr int kLeastPlotRows = 5, kMostPlotRows = 16;

size_t StartsIn(std::span<const RunEvent> events) {
  return std::ranges::count(events, "start", &RunEvent::name);
}

// The mean over the last steps; NaN if there is none.
double RecentMean(const RunHistory& history, const std::string& name) {
  const std::span<const PlotPoint> all = CurveNamed(history.curves, name);
  const auto recent = all.last(std::min(all.size(), kRecentSteps));
  double sum = 0;
  for (const PlotPoint& point : recent) sum += point.y;
  return recent.empty() ? NAN : sum / static_cast<double>(recent.size());
}

double LastIn(const RunHistory& history, const std::string& name) {
  const Curve& curve = CurveNamed(history.curves, name);
  return curve.empty() ? NAN : curve.back().y;
}

// At most `columns` wide, whatever it holds.
std::string FittingLine(const std::string& text, int columns) {
  const std::string printable = Printable(text);
  if (static_cast<int>(CodePointCount(printable)) <= columns) return printable;
  return Printable(printable, std::max(columns - 3, 1));  // and an ellipsis
}

// The present activity of the run, and whether it is as it should be.
struct RunState {
  std::string text;
  bool bad = false;
};

RunState StateOf(const WatchedRun& run) {
  if (!run.holder.empty()) return {"running: " + run.holder};
  if (run.report.done) return {"done"};
  const auto& events = run.report.events;
  if (events.empty()) return {"no process runs it"};
  const RunEvent& last = events.back();
  if (last.name == "stop") return {"stopped on request; the same command continues"};
  if (last.name == "failed") {
    const auto error = last.facts.find("error");
    const bool told = error != last.facts.end() && error->is_string();
    return {"failed: " + (told ? error->get<std::string>() : "see its log"), true};
  }
  return {"not running: killed, or its machine failed; run the same command to continue", true};
}

class View {
 public:
  View(const WatchedRun& run, const ViewOptions& options) : run_(run), options_(options) {}

  std::vector<std::string> Lines() && {
    Title();
    for (const std::string& line : FieldLines(Numbers())) Add(line);
    const int log = std::min<int>(static_cast<int>(run_.log.size()), kLogLines);
    const int header = static_cast<int>(lines_.size());
    // An empty line above the curve and one above the log; the curve has a line of steps below it.
    const int for_both = options_.rows - header - 2 - log - 1;
    const int for_plot = for_both >= kLeastPlotRows ? for_both : options_.rows - header - 2;
    if (for_plot >= kLeastPlotRows) Curves(std::min(for_plot, kMostPlotRows));
    if (for_both >= kLeastPlotRows && log > 0) Log(log);
    lines_.resize(std::min<size_t>(lines_.size(), std::max(options_.rows, 1)));
    return std::move(lines_);
  }

 private:
  // `text` may come from anywhere.
  void Add(const std::string& text, const char* color = "") {
    const std::string fitting = FittingLine(text, options_.columns - 1);
    const bool colored = options_.colored && *color;
    lines_.push_back(colored ? color + fitting + "\033[0m" : fitting);
  }

  void Title() {
    const RunHistory& history = run_.report.history;
    const int64_t steps = run_.report.config.train().steps();
    std::string text = "no step yet";
    if (!history.loss.empty()) {
      const double share = steps > 0 ? static_cast<double>(history.step) / steps : 0;
      text = fmt::format("step {} of {}, {:.1f}%", WithThousands(history.step),
                         WithThousands(steps), 100 * share);
    }
    // A path may be longer than the terminal is wide.
    Add(text + "  " + run_.report.directory.string(), "\033[1m");
    const RunState state = StateOf(run_);
    Add("  " + state.text, state.bad ? "\033[31m" : "");
  }

  NamedTexts Numbers() const {
    const RunHistory& history = run_.report.history;
    if (history.loss.empty()) return {{"ranks", Ranks()}};
    NamedTexts fields{
        {"speed", Speed()},
        {"steps", DescribePhases(history)},
        {"goodput", run_.report.goodput ? Describe(*run_.report.goodput) : ""},
        {"training",
         fmt::format("{:.4f}, gradient norm {:.3g}, learning rate {:.3g}{}", history.loss.back().y,
                     LastIn(history, "grad_norm"), LastIn(history, "learning_rate"),
                     history.skipped > 0
                         ? fmt::format(", {} skipped", WithThousands(history.skipped))
                         : "")}};
    std::ranges::copy(DescribeEvaluations(history), std::back_inserter(fields));
    fields.emplace_back("ranks", Ranks());
    return fields;
  }

  std::string Speed() const {
    const RunHistory& history = run_.report.history;
    const double seconds = RecentMean(history, "seconds");
    const int64_t left = run_.report.config.train().steps() - history.step;
    std::string text = fmt::format("{} tokens/s, {:.3g} s a step",
                                   HumanCount(RecentMean(history, "tokens_per_second")), seconds);
    if (left > 0 && !run_.holder.empty()) {
      text += fmt::format(", {} of steps left", HumanDuration(static_cast<double>(left) * seconds));
    }
    if (std::isfinite(history.last_time)) {
      text += fmt::format("; last line {} ago",
                          HumanDuration(std::max(0.0, options_.now - history.last_time)));
    }
    return text;
  }

  // Empty before the first start.
  std::string Ranks() const {
    const RunHistory& history = run_.report.history;
    const auto& events = run_.report.events;
    const auto last = std::find_if(events.rbegin(), events.rend(),
                                   [](const RunEvent& event) { return event.name == "start"; });
    if (last == events.rend()) return "";
    const double ranks = NumberIn(last->facts, "ranks");
    std::string text = std::isfinite(ranks) ? fmt::format("{:.0f}", ranks) : "?";
    if (history.slowest_rank >= 0) {
      text += fmt::format(
          "; last step: rank {} took {:.3g} s until it had its gradients, the median "
          "{:.3g} s",
          history.slowest_rank, history.slowest_seconds, history.median_seconds);
    }
    return text;
  }

  void Curves(int rows) {
    const RunHistory& history = run_.report.history;
    if (history.loss.empty() && history.validation.empty()) return;
    const std::vector<std::span<const PlotPoint>> series{history.loss, history.validation};
    const std::string plot = Plot(history.loss, history.validation,
                                  {.columns = options_.columns - 1,
                                   .rows = rows,
                                   .braille = options_.braille,
                                   .x = RangeOf(series, &PlotPoint::x),
                                   .y = RangeOf(series, &PlotPoint::y)});
    lines_.emplace_back();
    for (const std::string& line : Split(plot.substr(0, plot.size() - 1), '\n')) {
      lines_.push_back(line);
    }
  }

  void Log(int count) {
    lines_.emplace_back();
    for (auto line = run_.log.end() - count; line != run_.log.end(); ++line) Add(*line);
  }

  const WatchedRun& run_;
  const ViewOptions& options_;
  std::vector<std::string> lines_;
};

}  // namespace

RunWatcher::RunWatcher(const Path& directory) {
  const RunDirectory run{directory};
  if (!Exists(run.metrics()) && !Exists(run.logs())) {
    FailNoRun(directory, "metrics.jsonl and no log/");
  }
  run_.report.directory = directory;
}

const WatchedRun& RunWatcher::Look() {
  LookAtHistory();
  LookAtLog();
  run_.holder = RunLock::HolderOf(run_.report.directory);
  return run_;
}

void RunWatcher::LookAtHistory() {
  RunReport& report = run_.report;
  const RunDirectory run{report.directory};
  if (!Exists(run.metrics())) return;
  if (history_) history_->Update();
  report.events = ReadEvents(run.events());
  // The metrics were cut between the last look and this one: where that was, is unknown.
  if (const size_t starts = StartsIn(report.events); !history_ || starts != starts_) {
    history_.emplace(run.metrics());
    history_->Update();
    starts_ = starts;
    report.config = ConfigOfRun(report.directory);
  }
  report.history = history_->history();
  report.goodput = GoodputOf(report.history, report.events);
  report.done = RunStatus(report.directory).IsDone(report.history.step);
}

void RunWatcher::LookAtLog() {
  const Path path = RunDirectory{run_.report.directory}.logs() / RankLogName(0);
  if (!log_ && !Exists(path)) return;
  if (!log_) log_.emplace(path);
  while (const auto line = log_->Next()) {
    run_.log.emplace_back(*line);
    if (run_.log.size() > kLogLines) run_.log.pop_front();
  }
}

std::vector<std::string> ViewOf(const WatchedRun& run, const ViewOptions& options) {
  return View(run, options).Lines();
}

}  // namespace syntra
