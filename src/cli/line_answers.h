// SPDX-License-Identifier: Apache-2.0
// Commands that answer each line of standard input with a line: `generate`, `score`. All ranks of a
// job share the work.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "dist/communicator.h"
#include "run/watchdog.h"

namespace syntra {

// What is wrong with a line as text: a corpus with it would have a bad record. "" if nothing is.
std::string TextFault(std::string_view line);
// "line 7 of the input " + `what`
std::string LineError(size_t number, std::string_view what);
// Prints a LineError, and that the line's answer is an empty one.
void PrintLineError(const std::string& error);

class LineAnswers {
 public:
  LineAnswers(Communicator& ranks, Watchdog& watchdog) : ranks_(ranks), watchdog_(watchdog) {}

  // Returns a line for each of `lines` on rank 0; the results of other ranks are ignored.
  // Collective.
  using Answer = std::function<std::vector<std::string>(const std::vector<std::string>& lines)>;
  // Rank 0 reads standard input to its end and prints, with spaces for line breaks in an answer, so
  // that each line has one line of output. Blocks are as ArrivingLines gives them, whatever the
  // number of ranks.
  void Run(const Answer& answer);

  // Called by `answer` if line `index` of the block is bad. Its answer is then an empty line.
  // Returns the error "line 7 of the input " + `what`, which rank 0 prints.
  std::string Report(size_t index, const std::string& what);
  // Called by `answer` when this rank has answered `lines` more lines of the block.
  void Advance(size_t lines);

  // kData if any line was bad.
  ExitCode code() const { return bad_ > 0 ? ExitCode::kData : ExitCode::kDone; }

 private:
  // On rank 0. A reader that pauses (`less`) is no hang.
  void Print(std::string_view text);

  Communicator& ranks_;
  Watchdog& watchdog_;
  size_t before_ = 0;  // lines of the blocks before
  size_t block_ = 0;   // of this one
  size_t answered_ = 0;
  size_t bad_ = 0;
  int64_t broken_ = 0;            // answers with line breaks
  double start_ = 0, shown_ = 0;  // monotonic
};

}  // namespace syntra
