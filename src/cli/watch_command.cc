// SPDX-License-Identifier: Apache-2.0
// syntra watch: a run's state, redrawn in place.
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_report.h"
#include "run/json_lines.h"
#include "run/run_history.h"
#include "run/run_lock.h"
#include "run/run_status.h"
#include "run/signals.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

constexpr size_t kLogLines = 6;
constexpr size_t kRecentSteps = 100;
constexpr int kLeastPlotRows = 5, kMostPlotRows = 16;

size_t StartsIn(std::span<const RunEvent> events) {
  return std::ranges::count(events, "start", &RunEvent::name);
}

// NaN where there is no step.
struct Speed {
  double tokens_per_second, seconds_a_step;
};

// Of the last steps: their tokens over their seconds, and the mean of these.
Speed RecentSpeed(const RunHistory& history) {
  const Curve& seconds = CurveNamed(history.curves, "seconds");
  const Curve& rates = CurveNamed(history.curves, "tokens_per_second");
  const size_t count = std::min({seconds.size(), rates.size(), kRecentSteps});
  double tokens = 0, sum = 0;
  for (size_t i = 1; i <= count; ++i) {
    const double of_step = seconds[seconds.size() - i].y;
    tokens += rates[rates.size() - i].y * of_step;
    sum += of_step;
  }
  return {tokens / sum, sum / static_cast<double>(count)};
}

double LastIn(const RunHistory& history, const std::string& name) {
  const Curve& curve = CurveNamed(history.curves, name);
  return curve.empty() ? NAN : curve.back().y;
}

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

struct ViewOptions {
  int columns = 80, rows = 24;
  bool braille = true, colored = false;
  double now = 0;  // seconds since 1970
};

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

// At most `rows` lines of at most `columns` characters. If there are few rows, the log is left out
// first, then the curve.
class View {
 public:
  View(const WatchedRun& run, const ViewOptions& options) : run_(run), options_(options) {}

  std::vector<std::string> Lines() && {
    Title();
    // Values are shown however long the names of tasks and metrics are.
    for (const std::string& line : FieldLines(Numbers(), options_.columns / 2)) Add(line);
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
        {"speed", SpeedText()},
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

  std::string SpeedText() const {
    const RunHistory& history = run_.report.history;
    const auto [tokens_per_second, seconds] = RecentSpeed(history);
    const int64_t left = run_.report.config.train().steps() - history.step;
    std::string text =
        fmt::format("{} tokens/s, {:.3g} s a step", HumanCount(tokens_per_second), seconds);
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
    for (const std::string& line : Split(plot.substr(0, plot.size() - 1), '\n')) Add(line);
  }

  void Log(int count) {
    lines_.emplace_back();
    for (auto line = run_.log.end() - count; line != run_.log.end(); ++line) Add(*line);
  }

  const WatchedRun& run_;
  const ViewOptions& options_;
  std::vector<std::string> lines_;
};

// The terminal's other screen, without a cursor; and back.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";

void Write(std::string_view text) {
  if (WriteAll(STDOUT_FILENO, text)) return;
  Fail(ExitCode::kResources, "cannot write to the terminal: {}", SystemErrorText(errno));
}

// Signal handlers can reach nothing but globals.
std::atomic<const termios*> terminal_before{nullptr};

// Gives the terminal back as it was.
void Restore() {
  WriteAll(STDOUT_FILENO, kLeave);
  if (const termios* before = terminal_before.load()) tcsetattr(STDIN_FILENO, TCSANOW, before);
}

// A terminal's whole screen, redrawn in place until its user has seen enough. Its earlier contents
// come back when this object or the process ends, also by ^C, SIGTERM or a closed terminal.
class Screen {
 public:
  // Standard output must be a terminal.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Draws `lines`: at most as many as the terminal has, none wider than it.
  void Draw(std::span<const std::string> lines);

  // Waits for `seconds` and returns true. Returns false as soon as `q` is typed or a signal asks to
  // end.
  bool Wait(double seconds);

 private:
  std::optional<termios> before_;  // of standard input, if that is a terminal
};

Screen::Screen() {
  InstallSignalHandlers();
  SetRestore(Restore);
  Write(kEnter);
  termios now = {};
  if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &now) == 0) {
    before_ = now;
    terminal_before.store(&*before_);
    // Keys come as they are typed and are not shown. ^Z would leave the terminal like this.
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
}

Screen::~Screen() {
  Restore();
  SetRestore(nullptr);  // not before: a second ^C may come at any moment
  terminal_before.store(nullptr);
}

void Screen::Draw(std::span<const std::string> lines) {
  std::string text = "\033[H";
  for (const std::string& line : lines) {
    text += line + "\033[K";
    // A line end on the last line would scroll.
    if (&line != &lines.back()) text += "\n";
  }
  Write(text + "\033[J");
}

bool Screen::Wait(double seconds) {
  const double end = MonotonicSeconds() + seconds;
  while (PollSignals() != StopRequest::kSaveAndStop) {
    const double left = end - MonotonicSeconds();
    if (left <= 0) return true;
    pollfd input{.fd = before_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    // A signal just before this call would not end it: it never lasts for long.
    if (poll(&input, 1, static_cast<int>(1000 * std::min(left, 0.2)) + 1) <= 0) continue;
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q') return false;
  }
  return false;
}

ViewOptions OptionsNow(bool colored) {
  return {.columns = TerminalColumns(STDOUT_FILENO),
          .rows = TerminalRows(STDOUT_FILENO),
          .braille = LocaleIsUtf8(),
          .colored = colored,
          .now = UnixSeconds()};
}

}  // namespace

Action SetUpWatch(CLI::App& app) {
  struct Options {
    std::string directory;
    double every = 2;
    bool once = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("directory", options->directory, "Run directory")->required()->type_name("DIR");
  app.add_flag(
      "--once", options->once,
      "Print the status once and exit; the default when standard output is not a terminal");
  app.add_option("--every", options->every, "Seconds between updates")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  return [options] {
    RunWatcher watcher(options->directory);
    const bool colored = WantsColor(STDOUT_FILENO);
    if (options->once || !IsTerminal(STDOUT_FILENO)) {
      const std::vector<std::string> lines = View(watcher.Look(), OptionsNow(colored)).Lines();
      fmt::print("{}\n", Join(lines, "\n"));
      return ExitCode::kDone;
    }
    Screen screen;
    do {
      screen.Draw(View(watcher.Look(), OptionsNow(colored)).Lines());
    } while (screen.Wait(options->every));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
