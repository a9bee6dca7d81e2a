// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <new>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/line_reader.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

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

// The members of an object that have the same name. There should be one.
struct Members {
  int64_t count = 0;
  simdjson::dom::element last;
};

Members MembersOf(const simdjson::dom::object& object, std::string_view name) {
  Members members;
  for (const auto& [key, value] : object) {
    if (key == name) members = {members.count + 1, value};
  }
  return members;
}

// Every line of such a file would be a bad record, or its only line one.
void RequireLines(const Path& path, std::string_view first) {
  const std::string_view text = StripSpace(first);
  if (text != "[" && text != "{" && !text.starts_with("[{")) return;
  Fail(ExitCode::kData,
       "{} is one JSON document, but each line must be a JSON object of its own, as jq -c '.[]' "
       "writes those of a list",
       path.string());
}

constexpr size_t kKeptCapacity = size_t{4} << 20;  // of a parser, in bytes of a line

// Lines that are JSON objects. Blank ones are skipped.
class JsonReader : public RecordReader {
 public:
  explicit JsonReader(const Path& path) : RecordReader(path), lines_(OpenByteSource(path)) {}

 protected:
  bool Read(Record* record) override {
    Line line;
    do {
      if (!lines_.Next(&line)) return false;
      record->offset = line.offset;
      record->line = line.number;
      record->fault = Parse(line, record);
    } while (record->fault == RecordFault::kEmptyLine);
    return true;
  }

  // Takes from an object what is wanted.
  virtual RecordFault Take(const simdjson::dom::object& object, Record* record) = 0;

 private:
  // The on-demand parser would not check what follows the wanted field; the DOM parser does.
  RecordFault Parse(const Line& line, Record* record) {
    if (line.too_long) return RecordFault::kLineTooLong;
    if (line.text.starts_with(kByteOrderMark)) return RecordFault::kByteOrderMark;
    if (line.text.find_first_not_of(" \t\r") == std::string_view::npos) {
      return RecordFault::kEmptyLine;
    }
    if (line.number == 1) RequireLines(path(), line.text);
    static_assert(TextStream::kPadding >= simdjson::SIMDJSON_PADDING);
    // The parser would keep the memory that its longest line took.
    if (parser_.capacity() > kKeptCapacity) parser_ = simdjson::dom::parser();
    simdjson::dom::element root;
    const simdjson::error_code code =
        parser_.parse(line.text.data(), line.text.size(), /*realloc_if_needed=*/false).get(root);
    if (code != simdjson::SUCCESS) {
      const RecordFault fault = FaultOf(code, line);
      // Not all of these lines break JSON's rules: numbers may be larger than the parser reads.
      if (fault == RecordFault::kNotJson) record->detail = simdjson::error_message(code);
      return fault;
    }
    simdjson::dom::object object;
    if (root.get(object) != simdjson::SUCCESS) return RecordFault::kNotAnObject;
    return Take(object, record);
  }

  LineReader lines_;
  simdjson::dom::parser parser_;
};

class JsonTextReader : public JsonReader {
 public:
  JsonTextReader(const Path& path, std::string text_field)
      : JsonReader(path), text_field_(std::move(text_field)) {}

 protected:
  RecordFault Take(const simdjson::dom::object& object, Record* record) override {
    const auto [count, field] = MembersOf(object, text_field_);
    if (count != 1) {
      record->detail = NamesIn(object);
      return count == 0 ? RecordFault::kMissingText : RecordFault::kRepeatedField;
    }
    if (field.is_null()) return RecordFault::kNullText;
    if (field.get(record->text) != simdjson::SUCCESS) return RecordFault::kTextNotAString;
    return CheckText(record->text);
  }

 private:
  std::string text_field_;
};

// Finds the member `name` of `object`, or, where there is none, of the objects in it that the parts
// of the name before its dots lead to. Null is like none.
RecordFault Find(const simdjson::dom::object& object, std::string_view name,
                 simdjson::dom::element* found) {
  const auto [count, value] = MembersOf(object, name);
  if (count > 1) return RecordFault::kRepeatedField;
  if (count == 1) {
    *found = value;
    return value.is_null() ? RecordFault::kMissingField : RecordFault::kNone;
  }
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return RecordFault::kMissingField;
  simdjson::dom::element outer;
  const RecordFault fault = Find(object, name.substr(0, dot), &outer);
  if (fault != RecordFault::kNone) return fault;
  simdjson::dom::object inner;
  if (outer.get(inner) != simdjson::SUCCESS) return RecordFault::kMissingField;
  return Find(inner, name.substr(dot + 1), found);
}

// Why this value of a field is no text.
std::string NestedDetail(const std::string& name, simdjson::dom::element value) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return fmt::format("\"{}\" is a list", name);
  return fmt::format("\"{}\" is an object; {}", name, NamesIn(object));
}

class JsonTable : public JsonReader {
 public:
  JsonTable(const Path& path, std::vector<TableField> fields)
      : JsonReader(path), fields_(std::move(fields)), values_(fields_.size()) {}

 protected:
  RecordFault Take(const simdjson::dom::object& object, Record* record) override {
    for (size_t i = 0; i < fields_.size(); ++i) {
      values_[i].reset();
      simdjson::dom::element value;
      const RecordFault lookup = Find(object, fields_[i].name, &value);
      if (lookup == RecordFault::kMissingField && fields_[i].optional) continue;
      if (lookup != RecordFault::kNone) {
        record->detail = fmt::format("\"{}\"; {}", fields_[i].name, NamesIn(object));
        return lookup;
      }
      if (!fields_[i].nested && (value.is_object() || value.is_array())) {
        record->detail = NestedDetail(fields_[i].name, value);
        return RecordFault::kBadValue;
      }
      std::string_view text;
      values_[i] =
          value.get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::minify(value);
      const RecordFault fault = CheckText(*values_[i]);
      if (fault != RecordFault::kNone) return fault;
    }
    record->fields = values_;
    return RecordFault::kNone;
  }

 private:
  std::vector<TableField> fields_;
  std::vector<std::optional<std::string>> values_;
};

}  // namespace

std::unique_ptr<RecordReader> OpenJsonRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<JsonTextReader>(path, text_field);
}

std::unique_ptr<RecordReader> OpenJsonTable(const Path& path, std::vector<TableField> fields) {
  return std::make_unique<JsonTable>(path, std::move(fields));
}

bool StartsLikeJson(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{';
}

}  // namespace syntra
