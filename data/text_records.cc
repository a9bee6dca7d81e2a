// SPDX-License-Identifier: Apache-2.0
#include "data/line_reader.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

class TextReader : public RecordReader {
 public:
  explicit TextReader(const Path& path) : RecordReader(path), lines_(OpenByteSource(path)) {}

 protected:
  bool Read(Record* record) override {
    Line line;
    do {
      if (!lines_.Next(&line)) return false;
    } while (!line.too_long && line.text.find_first_not_of(" \t\r") == std::string_view::npos);
    *record = {.text = line.text, .offset = line.offset, .line = line.number};
    if (record->text.ends_with('\r')) record->text.remove_suffix(1);
    record->fault = line.too_long                              ? RecordFault::kLineTooLong
                    : record->text.starts_with("\xEF\xBB\xBF") ? RecordFault::kByteOrderMark
                                                               : CheckText(record->text);
    return true;
  }

 private:
  LineReader lines_;
};

}  // namespace

std::unique_ptr<RecordReader> OpenTextRecords(const Path& path, const std::string&) {
  return std::make_unique<TextReader>(path);
}

}  // namespace syntra
