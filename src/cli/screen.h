// SPDX-License-Identifier: Apache-2.0
// A terminal's whole screen, redrawn in place until its user has seen enough.
#pragma once

#include <termios.h>

#include <optional>
#include <span>
#include <string>

namespace syntra {

// Takes the terminal's screen. Its earlier contents come back when this object or the process ends,
// also by ^C, SIGTERM or a closed terminal.
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

}  // namespace syntra
