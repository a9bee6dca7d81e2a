// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "base/output.h"
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

}  // namespace

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

}  // namespace syntra
