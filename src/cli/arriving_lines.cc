// SPDX-License-Identifier: Apache-2.0
#include "cli/arriving_lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"

namespace syntra {
namespace {

// Lines that come faster than this belong to one block: a program that writes them to a pipe may
// stop for a moment. Who writes a line and waits for the answer waits that much longer.
constexpr double kPause = 0.05;
// A slow stream gets its answers, too, and not when a block is full.
constexpr double kLongestWait = 1;

}  // namespace

bool ArrivingLines::TakeLine(std::vector<std::string>* lines) {
  const size_t end = text_.find('\n', searched_);
  if (end == text_.npos && !ended_) {
    searched_ = text_.size();
    return false;
  }
  if (number_ == 0) taken_ = text_.size() - WithoutByteOrderMark(text_, "the input").size();
  if (taken_ == text_.size()) return false;
  const size_t stop = std::min(end, text_.size());
  lines->push_back(text_.substr(taken_, stop - taken_));
  if (lines->back().ends_with('\r')) lines->back().pop_back();
  taken_ = searched_ = std::min(stop + 1, text_.size());
  ++number_;
  return true;
}

bool ArrivingLines::Wait(double seconds) const {
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  const int ready = poll(&input, 1, static_cast<int>(std::max(0.0, seconds) * 1000));
  if (ready < 0 && errno != EINTR) {
    Fail(ExitCode::kResources, "cannot wait for the input: {}", SystemErrorText(errno));
  }
  return ready > 0;
}

void ArrivingLines::Read() {
  text_.erase(0, taken_);
  searched_ -= taken_;
  taken_ = 0;
  if (text_.size() > kLongestLine) {
    Fail(ExitCode::kData, "line {} of the input has more than {} MiB; is it a text file?",
         number_ + 1, kLongestLine >> 20);
  }
  std::vector<char> buffer(size_t{1} << 16);
  const ssize_t count = read(descriptor_, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return;
  if (count < 0) Fail(ExitCode::kResources, "cannot read the input: {}", SystemErrorText(errno));
  ended_ = count == 0;
  text_.append(buffer.data(), count);
}

std::vector<std::string> ArrivingLines::Next(double seconds) {
  std::vector<std::string> lines;
  size_t bytes = 0;
  Clock::time_point first;
  while (lines.size() < kMostLines && bytes < kMostBytes) {
    if (TakeLine(&lines)) {
      if (lines.size() == 1) first = Clock::now();
      bytes += lines.back().size();
      continue;
    }
    const double wait =
        lines.empty() ? seconds : std::min(kPause, kLongestWait - SecondsSince(first));
    if (ended_ || !Wait(wait)) break;
    // The lines so far are answered first; the next call fails at the line that is too long.
    if (!lines.empty() && text_.size() - taken_ > kLongestLine) break;
    Read();
  }
  return lines;
}

}  // namespace syntra
