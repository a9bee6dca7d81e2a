// SPDX-License-Identifier: Apache-2.0
// Lines of standard input: every one of them arrives, in order, unless they are UTF-16 or UTF-32.
#include "cli/arriving_lines.h"

#include "base/text.h"
#include "base/utf8.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const std::string_view text = WithoutByteOrderMark(input, "the input");
  const File file = File::OpenForRead(InputFile(input, "lines.txt"));
  ArrivingLines arriving(file.descriptor());
  std::vector<std::string> lines;
  while (!arriving.ended()) {
    for (std::string& line : arriving.Next(1)) lines.push_back(std::move(line));
  }
  std::vector<std::string> expected = Split(text, '\n');
  if (expected.back().empty()) expected.pop_back();
  for (std::string& line : expected) {
    if (line.ends_with('\r')) line.pop_back();
  }
  SYNTRA_CHECK(lines == expected, "{} lines of {}", lines.size(), expected.size());
}

std::vector<std::string> Seeds() {
  return {"", "\xEF\xBB\xBFone", "one\ntwo\r\n\nlast", std::string(3000, '\n')};
}

}  // namespace

const Target fuzz_arriving_lines = {.name = "arriving_lines",
                                    .refusals = {ExitCode::kData},
                                    .run = Run,
                                    .seeds = Seeds,
                                    .tokens = {"\n", "\r\n", "\xEF\xBB\xBF", "\xFF\xFE"},
                                    .mutations = 500};

}  // namespace syntra
