// SPDX-License-Identifier: Apache-2.0
// A text corpus: good records, each after the place it says, are the lines that are not blank.
#include "base/text.h"
#include "base/utf8.h"
#include "data/record_reader.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

std::vector<std::string> Expected(std::string_view input) {
  std::vector<std::string> lines;
  if (input.starts_with(kByteOrderMark)) input.remove_prefix(kByteOrderMark.size());
  for (std::string line : Split(input, '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    if (IsUtf8(line) && line.find('\0') == line.npos && !line.starts_with(kByteOrderMark)) {
      lines.push_back(line);
    }
  }
  return lines;
}

void Run(std::string_view input) {
  const auto reader = OpenRecordReader(InputFile(input, "input.txt"), "");
  std::vector<std::string> lines;
  for (Record record; reader->Next(&record);) {
    if (record.fault != RecordFault::kNone) continue;
    lines.emplace_back(record.text);
  }
  if (!input.starts_with("\x1f\x8b")) SYNTRA_CHECK(lines == Expected(input));
}

std::vector<std::string> Seeds() {
  return {"one\ntwo words\r\n\n \t\nd\xc3\xb6 \xe2\x82\xac\n",
          "\xef\xbb\xbf"
          "first\nlast",
          "\n"};
}

}  // namespace

const Target fuzz_text_records = {
    .name = "text_records",
    .refusals = {ExitCode::kData},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\n", "\r\n", "\xef\xbb\xbf", "\xff\xfe", "\xed\xa0\x80"},
    .mutations = 3000};

}  // namespace syntra
