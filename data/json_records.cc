#include <simdjson.h>

#include "data/line_reader.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class JsonReader : public RecordReader {
 public:
  JsonReader(std::unique_ptr<ByteSource> source, std::string text_field)
      : lines_(std::move(source)), text_field_(std::move(text_field)) {}

  bool Next(Record* record) override {
    Line line;
    if (!lines_.Next(&line)) return false;
    *record = {.offset = line.offset, .line = line.number};
    record->fault = Parse(line, &record->text);
    if (record->fault != RecordFault::kNone) record->text = {};
    return true;
  }

 private:
  // The DOM parser, not the on-demand one: only it checks what follows the wanted field.
  RecordFault Parse(const Line& line, std::string_view* text) {
    if (line.too_long) return RecordFault::kLineTooLong;
    if (line.text.starts_with(kByteOrderMark)) return RecordFault::kByteOrderMark;
    if (line.text.find_first_not_of(" \t\r") == std::string_view::npos) {
      return RecordFault::kEmptyLine;
    }
    static_assert(LineReader::kPadding >= simdjson::SIMDJSON_PADDING);
    simdjson::dom::element root;
    const simdjson::error_code code =
        parser_.parse(line.text.data(), line.text.size(), /*realloc_if_needed=*/false).get(root);
    if (code == simdjson::UTF8_ERROR) return RecordFault::kNotUtf8;
    if (code != simdjson::SUCCESS) {
      return line.complete ? RecordFault::kNotJson : RecordFault::kTruncatedLine;
    }
    simdjson::dom::object object;
    if (root.get(object) != simdjson::SUCCESS) return RecordFault::kNotAnObject;
    simdjson::dom::element field;
    if (object.at_key(text_field_).get(field) != simdjson::SUCCESS) {
      return RecordFault::kMissingText;
    }
    if (field.is_null()) return RecordFault::kNullText;
    if (field.get(*text) != simdjson::SUCCESS) return RecordFault::kTextNotAString;
    return CheckText(*text);
  }

  LineReader lines_;
  std::string text_field_;
  simdjson::dom::parser parser_;
};

}  // namespace

std::unique_ptr<RecordReader> MakeJsonReader(std::unique_ptr<ByteSource> source,
                                             std::string text_field) {
  return std::make_unique<JsonReader>(std::move(source), std::move(text_field));
}

}  // namespace syntra
