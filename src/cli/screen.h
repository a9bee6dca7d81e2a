// SPDX-License-Identifier: Apache-2.0
// A terminal's whole screen, redrawn in place until its user has seen enough.
#pragma once

#include <termios.h>

#include <optional>
#include <span>
#include <string>

namespace syntra {

// What stood on the terminal comes back when it ends, also by ^C, SIGTERM or a closed terminal.
class Screen {
 public:
  // Standard output is a terminal.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // At most as many lines as the terminal has, none wider than it is.
  void Draw(std::span<const std::string> lines);
  // False as soon as `q` was typed or a signal asked to end; true after so many seconds.
  bool Wait(double seconds);

 private:
  std::optional<termios> before_;  // of standard input, if that is a terminal
};

}  // namespace syntra
