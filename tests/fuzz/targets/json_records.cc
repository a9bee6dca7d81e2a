// SPDX-License-Identifier: Apache-2.0
// A jsonl corpus: each record lies where it says, and nlohmann-json finds the same text in it.
#include <algorithm>

#include "base/json.h"
#include "data/record_reader.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

// The member "text" of the line; nothing if there is not exactly one.
std::optional<std::string> TextOf(std::string_view line) {
  int members = 0;
  const auto count = [&](int depth, Json::parse_event_t event, Json& parsed) {
    members += event == Json::parse_event_t::key && depth == 1 && parsed == "text";
    return true;
  };
  const Json object = Json::parse(line, count);
  if (members != 1) return std::nullopt;
  return object.at("text").get<std::string>();
}

void CheckRecord(std::string_view input, const Record& record) {
  const auto at = static_cast<size_t>(record.offset);
  SYNTRA_CHECK(at <= input.size() && (at == 0 || at == 3 || input[at - 1] == '\n'), "offset {}",
               at);
  SYNTRA_CHECK(std::ranges::count(input.substr(0, at), '\n') == record.line - 1);
  if (record.fault != RecordFault::kNone) return;
  SYNTRA_CHECK(CheckText(record.text) == RecordFault::kNone);
  const std::string_view line = input.substr(at, input.find('\n', at) - at);
  if (const auto text = TextOf(line)) SYNTRA_CHECK(*text == record.text, "the text is {}", *text);
}

// A file whose name does not tell its format.
void ReadUnnamed(std::string_view input) {
  try {
    const auto reader = OpenRecordReader(InputFile(input, "input"), "text");
    for (Record record; reader->Next(&record);) {
    }
  } catch (const Error& error) {
    if (error.code() != ExitCode::kData) throw;
  }
}

void Run(std::string_view input) {
  ReadUnnamed(input);
  const Path path = InputFile(input, "input.jsonl");
  const bool is_gzip = input.starts_with("\x1f\x8b");
  const auto reader = OpenRecordReader(path, "text");
  for (Record record; reader->Next(&record);) {
    if (!is_gzip) CheckRecord(input, record);
  }
  const auto table = OpenTable(path, {.kind = TableFormat::Kind::kJsonLines},
                               {{"text"}, {"meta.id", true}, {"url", true, /*nested=*/true}});
  for (Record record; table->Next(&record);) {
    for (const auto& field : record.fields) {
      SYNTRA_CHECK(!field || CheckText(*field) == RecordFault::kNone);
    }
  }
}

std::vector<std::string> Seeds() {
  return {R"({"url":[1,-2.5e3,null,true],"text":"d\u00f6cument with \"quotes\""})"
          "\n",
          R"({"text":"a","meta":{"id":12345678901234567890}})"
          "\n"
          R"({"text":"\ud83d\ude00\n"})",
          "\xef\xbb\xbf{\"text\":\"\"}\r\n\n{\"text\":null}\n[]\n"};
}

}  // namespace

const Target fuzz_json_records = {
    .name = "json_records",
    .refusals = {ExitCode::kData},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"text\":", "\"meta\":", "\"id\"", "{", "}", "[", "]", "null", "true", "\\u",
               "\\ud800", "1e400", "\n", "\xef\xbb\xbf", "\xff\xfe"},
    .mutations = 3000};

}  // namespace syntra
