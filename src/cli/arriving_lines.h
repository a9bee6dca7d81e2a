// SPDX-License-Identifier: Apache-2.0
// Lines as they come: a person at a terminal gets an answer after each, and a file is read in
// blocks.
#pragma once

#include <string>
#include <vector>

namespace syntra {

class ArrivingLines {
 public:
  // Reads a file descriptor, which must stay open.
  explicit ArrivingLines(int descriptor) : descriptor_(descriptor) {}

  // Waits for a line, then returns all that have arrived, without newlines. Empty at the end of the
  // input, where a last line needs no newline. Throws Error(kResources).
  std::vector<std::string> Next();

 private:
  int descriptor_;
  std::string rest_;  // the beginning of a line that has not arrived as a whole
};

}  // namespace syntra
