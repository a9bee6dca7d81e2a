// SPDX-License-Identifier: Apache-2.0
// Takes lines as they come: a person at a terminal gets an answer after each line, and lines that
// come fast are taken in blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syntra {

class ArrivingLines {
 public:
  // A block has at most kMostLines lines, and no further line once it has kMostBytes.
  static constexpr size_t kMostLines = 1024, kMostBytes = size_t{4} << 20;
  // The longest line that is read.
  static constexpr size_t kLongestLine = size_t{64} << 20;

  // Reads a file descriptor, which must stay open.
  explicit ArrivingLines(int descriptor) : descriptor_(descriptor) {}

  // Waits for a line, then takes the lines that follow it without a pause, at most a block. Returns
  // them without their ends, LF or CRLF; none if no line comes for `seconds`, and at the end of the
  // input. The last line needs no end, and a byte-order mark is no part of the first. Throws
  // Error(kResources), and Error(kData) for a line that is too long, or text that is UTF-16 or
  // UTF-32.
  std::vector<std::string> Next(double seconds);
  // No line will come any more.
  bool ended() const { return ended_ && taken_ == text_.size(); }

 private:
  bool TakeLine(std::vector<std::string>* lines);
  bool Wait(double seconds) const;
  void Read();

  int descriptor_;
  std::string text_;     // read, but not yet taken
  size_t taken_ = 0;     // bytes of `text_` that lines have taken
  size_t searched_ = 0;  // where a newline may still be
  int64_t number_ = 0;   // lines taken
  bool ended_ = false;
};

}  // namespace syntra
