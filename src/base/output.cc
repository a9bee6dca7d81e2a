// SPDX-License-Identifier: Apache-2.0
#include "base/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/uninterrupted.h"

namespace syntra {
void OpenStandardDescriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    // open takes the lowest number that is free, which is this one.
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDWR);
  }
}

bool WriteAll(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written =
        Uninterrupted([&] { return write(descriptor, text.data(), text.size()); });
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string PrintableLines(std::string_view text) {
  std::vector<std::string> lines = Split(text, '\n');
  for (std::string& line : lines) line = Printable(line);
  return Join(lines, "\n");
}

void PrintNote(std::string_view text) noexcept {
  try {
    StderrLine().PrintBelow(PrintableLines(text) + '\n');
  } catch (const std::bad_alloc&) {
    // Better raw than not at all.
    StderrLine().PrintBelow(text);
    StderrLine().PrintBelow("\n");
  }
}

void PrintError(std::string_view message, std::string_view prefix) noexcept {
  // Configuration errors are lists that say "error:" on each line already.
  const bool marked = message.starts_with("error: ");
  try {
    PrintNote(fmt::format("{}{}{}", prefix, marked ? "" : "error: ", message));
  } catch (const std::bad_alloc&) {
    StderrLine().PrintBelow(prefix);
    StderrLine().PrintBelow(marked ? "" : "error: ");
    PrintNote(message);
  }
}

void FlushOutput() {
  errno = 0;
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return;
  const int error_number = errno;
  Fail(ExitCode::kResources, "cannot write to standard output{}",
       error_number == 0 ? "" : ": " + SystemErrorText(error_number));
}

void EndIfReaderIsGone() {
  if (!std::ferror(stdout)) return;
  // A pipe or socket that nobody reads is in error for poll.
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&output, 1, 0) != 1 || !(output.revents & (POLLERR | POLLHUP))) return;
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

}  // namespace syntra
