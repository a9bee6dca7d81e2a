// SPDX-License-Identifier: Apache-2.0
// syntra watch: a run's state, redrawn in place.
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_view.h"
#include "run/signals.h"

namespace syntra {
namespace {

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
      const std::vector<std::string> lines = ViewOf(watcher.Look(), OptionsNow(colored));
      fmt::print("{}\n", Join(lines, "\n"));
      return ExitCode::kDone;
    }
    Screen screen;
    do {
      screen.Draw(ViewOf(watcher.Look(), OptionsNow(colored)));
    } while (screen.Wait(options->every));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
