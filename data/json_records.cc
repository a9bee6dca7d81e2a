// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <new>

#include "base/error.h"
#include "data/line_reader.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The fault of a line that simdjson cannot parse. Some error codes are not about the line.
RecordFault FaultOf(simdjson::error_code code, const Line& line) {
  switch (code) {
    case simdjson::UTF8_ERROR:
      return RecordFault::kNotUtf8;
    case simdjson::MEMALLOC:
    case simdjson::CAPACITY:
      throw std::bad_alloc();
    case simdjson::UNINITIALIZED:
    case simdjson::UNSUPPORTED_ARCHITECTURE:
    case simdjson::IO_ERROR:
    case simdjson::UNEXPECTED_ERROR:
    case simdjson::PARSER_IN_USE:
    case simdjson::INSUFFICIENT_PADDING:
      SYNTRA_CHECK(false, "simdjson at line {}: {}", line.number, simdjson::error_message(code));
    default:
      return line.complete ? RecordFault::kNotJson : RecordFault::kTruncatedLine;
  }
}

std::string NamesIn(const simdjson::dom::object& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object) names.emplace_back(name);
  return names.empty() ? "the object is empty" : "its fields are " + QuotedNames(names);
}

class JsonReader : public RecordReader {
 public:
  JsonReader(const Path& path, std::string text_field)
      : RecordReader(path), lines_(OpenByteSource(path)), text_field_(std::move(text_field)) {}

 protected:
  bool Read(Record* record) override {
    Line line;
    if (!lines_.Next(&line)) return false;
    record->offset = line.offset;
    record->line = line.number;
    record->fault = Parse(line, record);
    return true;
  }

 private:
  // The on-demand parser would not check what follows the wanted field; the DOM parser does.
  RecordFault Parse(const Line& line, Record* record) {
    if (line.too_long) return RecordFault::kLineTooLong;
    if (line.text.starts_with(kByteOrderMark)) return RecordFault::kByteOrderMark;
    if (line.text.find_first_not_of(" \t\r") == std::string_view::npos) {
      return RecordFault::kEmptyLine;
    }
    static_assert(TextStream::kPadding >= simdjson::SIMDJSON_PADDING);
    simdjson::dom::element root;
    const simdjson::error_code code =
        parser_.parse(line.text.data(), line.text.size(), /*realloc_if_needed=*/false).get(root);
    if (code != simdjson::SUCCESS) return FaultOf(code, line);
    simdjson::dom::object object;
    if (root.get(object) != simdjson::SUCCESS) return RecordFault::kNotAnObject;
    simdjson::dom::element field;
    if (object.at_key(text_field_).get(field) != simdjson::SUCCESS) {
      record->detail = NamesIn(object);
      return RecordFault::kMissingText;
    }
    if (field.is_null()) return RecordFault::kNullText;
    if (field.get(record->text) != simdjson::SUCCESS) return RecordFault::kTextNotAString;
    return CheckText(record->text);
  }

  LineReader lines_;
  std::string text_field_;
  simdjson::dom::parser parser_;
};

}  // namespace

std::unique_ptr<RecordReader> OpenJsonRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<JsonReader>(path, text_field);
}

bool StartsLikeJson(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{';
}

}  // namespace syntra
