// SPDX-License-Identifier: Apache-2.0
#include "cli/line_answers.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/arriving_lines.h"
#include "data/bad_record.h"

namespace syntra {

std::string TextFault(std::string_view line) {
  const RecordFault fault = CheckText(line);
  return fault == RecordFault::kNone ? "" : fmt::format("is bad: {}", ReasonOf(fault));
}

std::string LineError(size_t number, std::string_view what) {
  return fmt::format("line {} of the input {}", number, what);
}

void PrintLineError(const std::string& error) {
  PrintError(error + "; an empty line takes its place");
}

namespace {

// While rank 0 waits for lines or for its reader, it lets the others know so often that it is
// there.
constexpr double kBeat = 1;
constexpr double kBetweenShows = 0.2;

struct Block {
  std::vector<std::string> lines;
  bool last = false;
};

// Gives the block of rank 0 to every rank.
void Share(Communicator& ranks, Block* block) {
  std::string text = block->last ? "1" : "0";
  for (const std::string& line : block->lines) text += line + '\n';
  BroadcastText(ranks, &text);
  if (ranks.rank() == 0) return;
  block->last = text.front() == '1';
  if (text.size() == 1) return;
  // Without the last newline, after which is no line.
  block->lines = Split(std::string_view(text).substr(1, text.size() - 2), '\n');
}

// Whether the reader of standard output takes more within `seconds`, or printing fails.
bool CanPrint(double seconds) {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  const int ready = poll(&output, 1, static_cast<int>(seconds * 1000));
  return ready > 0 || (ready < 0 && errno != EINTR);
}

}  // namespace

void LineAnswers::Print(std::string_view text) {
  while (!text.empty()) {
    if (!CanPrint(kBeat)) {
      Block none;
      Share(ranks_, &none);
      watchdog_.Alive();
      continue;
    }
    // What takes anything takes that much without a pause.
    const std::string_view piece = text.substr(0, PIPE_BUF);
    fmt::print("{}", piece);
    FlushOutput();
    text.remove_prefix(piece.size());
  }
}

void LineAnswers::Run(const Answer& answer) {
  const Watchdog::Phase phase(watchdog_, RunPhase::kAnswer);
  ArrivingLines input(STDIN_FILENO);
  start_ = MonotonicSeconds();
  for (Block block; !block.last; watchdog_.Alive()) {
    block = {};
    if (ranks_.rank() == 0) {
      block.lines = input.Next(kBeat);
      // The others stay until all is printed.
      block.last = block.lines.empty() && input.ended();
    }
    Share(ranks_, &block);
    if (block.lines.empty()) continue;
    block_ = block.lines.size();
    answered_ = 0;
    const std::vector<std::string> answers = answer(block.lines);
    before_ += block_;
    if (ranks_.rank() != 0) continue;
    std::string output;
    for (const std::string& text : answers) {
      const std::string line = OneLine(text);
      broken_ += line != text;
      output += line + '\n';
    }
    Print(output);
  }
  if (shown_ > 0) StderrLine().Finish();
  if (broken_ == 0) return;
  Log().warn("{} line breaks, which are printed as spaces; --json keeps them",
             broken_ == 1 ? "1 answer has" : WithThousands(broken_) + " answers have");
}

std::string LineAnswers::Report(size_t index, const std::string& what) {
  ++bad_;
  std::string error = LineError(before_ + index + 1, what);
  if (ranks_.rank() == 0) PrintLineError(error);
  return error;
}

void LineAnswers::Advance(size_t lines) {
  watchdog_.Alive();
  answered_ += lines;
  // Answers on the same terminal show it themselves.
  if (ranks_.rank() != 0 || !IsTerminal(STDERR_FILENO) || isatty(STDOUT_FILENO)) return;
  const double now = MonotonicSeconds();
  if (now - shown_ < kBetweenShows) return;
  shown_ = now;
  // The other ranks are about as far.
  const size_t done = before_ + std::min(block_, answered_ * ranks_.size());
  StderrLine().Show(fmt::format("{}, {:.1f} a second", Counted(done, "line"),
                                static_cast<double>(done) / (now - start_)));
}

}  // namespace syntra
