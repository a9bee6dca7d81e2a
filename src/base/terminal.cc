// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "base/output.h"

namespace syntra {
namespace {

// To the first column, and nothing after it.
constexpr std::string_view kErase = "\r\033[K";

std::string_view FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool IsTerminal(int descriptor) {
  const std::string_view kind = FromEnvironment("TERM");
  return !kind.empty() && kind != "dumb" && isatty(descriptor);
}

int TerminalColumns(int descriptor) {
  winsize size = {};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int TerminalRows(int descriptor) {
  winsize size = {};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

bool WantsColor(int descriptor) {
  if (!FromEnvironment("NO_COLOR").empty()) return false;
  const std::string_view force = FromEnvironment("CLICOLOR_FORCE");
  return (!force.empty() && force != "0") || IsTerminal(descriptor);
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = FromEnvironment(name);
    if (locale.empty()) continue;
    const size_t dot = locale.find('.');
    if (dot == locale.npos) return false;
    const std::string encoding(locale.substr(dot + 1, locale.find('@') - dot - 1));
    return strcasecmp(encoding.c_str(), "UTF-8") == 0 || strcasecmp(encoding.c_str(), "utf8") == 0;
  }
  return false;
}

void StatusLine::Show(std::string_view line) {
  const std::lock_guard lock(mutex_);
  shown_ = line;
  drawn_ = true;
  write_(std::string(kErase) + shown_);
}

void StatusLine::Print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (shown_.empty()) return write_(text);
  drawn_ = true;
  write_(std::string(kErase).append(text).append(shown_));
}

void StatusLine::PrintBelow(std::string_view text) noexcept {
  if (drawn_.exchange(false)) write_("\n");
  write_(text);
}

void StatusLine::Finish() {
  const std::lock_guard lock(mutex_);
  if (drawn_.exchange(false)) write_("\n");
  shown_.clear();
}

StatusLine& StderrLine() {
  // Never destroyed, since errors are printed to the end of the program, and not on the heap, since
  // one of them is that there is no memory.
  alignas(StatusLine) static std::byte memory[sizeof(StatusLine)];
  static StatusLine& line =
      *new (memory) StatusLine([](std::string_view text) { WriteAll(STDERR_FILENO, text); });
  return line;
}

}  // namespace syntra
