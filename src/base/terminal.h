// SPDX-License-Identifier: Apache-2.0
// The properties of a terminal, and the status line at its foot, which is redrawn in place.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace syntra {

// Whether a file descriptor is a terminal that can redraw a line: TERM is set and not "dumb".
bool IsTerminal(int descriptor);
// The width of the terminal; 80 where it is not known.
int TerminalColumns(int descriptor);
// The height of the terminal; 24 where it is not known.
int TerminalRows(int descriptor);
// Whether to write colours: on a terminal, or where CLICOLOR_FORCE is set and not "0"; never where
// NO_COLOR is set (no-color.org, bixense.com/clicolors).
bool WantsColor(int descriptor);
// Whether the locale of the environment (LC_ALL, LC_CTYPE, LANG) writes UTF-8.
bool LocaleIsUtf8();

// One line that shows how things stand, redrawn in place at the foot of the screen. Text that is
// written past this class is glued to the line, so everything that goes to the same terminal is
// printed here: log lines with Print, errors and reports with PrintBelow. May be used from several
// threads.
class StatusLine {
 public:
  // `write` puts text on the screen.
  explicit StatusLine(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  // Draws `line` instead of what was shown. It must fit the terminal's width.
  void Show(std::string_view line);
  // Writes whole lines above the line.
  void Print(std::string_view text);
  // Writes whole lines below the line, which stays on the screen as it is; the next Show draws a
  // new one below them. Takes no lock and no memory, so it works in a signal handler, and while
  // another thread hangs in Show or Print.
  void PrintBelow(std::string_view text) noexcept;
  // Leaves the line on the screen; what comes next stands below it.
  void Finish();

 private:
  std::mutex mutex_;
  std::function<void(std::string_view)> write_;
  std::string shown_;
  // Whether the cursor is after the line.
  std::atomic<bool> drawn_{false};
};

// The line of standard error.
StatusLine& StderrLine();

}  // namespace syntra
