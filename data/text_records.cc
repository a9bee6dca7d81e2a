// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"
#include "data/line_reader.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

RecordFault FaultOf(const Line& line) {
  if (line.too_long) return RecordFault::kLineTooLong;
  if (line.text.find_first_not_of(" \t\r") == std::string_view::npos) {
    return RecordFault::kEmptyLine;
  }
  if (line.text.starts_with(kByteOrderMark)) return RecordFault::kByteOrderMark;
  return CheckText(line.text);
}

class TextReader : public RecordReader {
 public:
  TextReader(const Path& path, bool skips_blank)
      : RecordReader(path), lines_(OpenByteSource(path)), skips_blank_(skips_blank) {}

 protected:
  bool Read(Record* record) override {
    Line line;
    do {
      if (!lines_.Next(&line)) return false;
      *record = {
          .text = line.text, .offset = line.offset, .line = line.number, .fault = FaultOf(line)};
    } while (skips_blank_ && record->fault == RecordFault::kEmptyLine);
    if (record->text.ends_with('\r')) record->text.remove_suffix(1);
    return true;
  }

 private:
  LineReader lines_;
  bool skips_blank_;
};

}  // namespace

std::unique_ptr<RecordReader> OpenTextRecords(const Path& path, const std::string&) {
  return std::make_unique<TextReader>(path, /*skips_blank=*/true);
}

std::unique_ptr<RecordReader> OpenLines(const Path& path) {
  return std::make_unique<TextReader>(path, /*skips_blank=*/false);
}

}  // namespace syntra
