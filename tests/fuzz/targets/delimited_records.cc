// SPDX-License-Identifier: Apache-2.0
// Tables as csv and tsv: what is read, written again by the format's rules, reads the same.
#include "data/record_reader.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

using Kind = TableFormat::Kind;
using Rows = std::vector<std::vector<std::string>>;

Rows Read(const Path& path, const TableFormat& format) {
  const auto reader =
      OpenTable(path, format, {{format.header ? "text" : "1"}, {format.header ? "id" : "2", true}});
  Rows rows;
  for (Record record; reader->Next(&record);) {
    if (record.fault != RecordFault::kNone) continue;
    std::vector<std::string>& row = rows.emplace_back();
    for (const auto& field : record.fields) {
      SYNTRA_CHECK(!field || CheckText(*field) == RecordFault::kNone);
      row.push_back(field.value_or(""));
    }
  }
  return rows;
}

std::string Written(const Rows& rows, Kind kind) {
  const auto field = [&](const std::string& text) {
    if (kind == Kind::kTsv) return text;
    std::string quoted;
    for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return '"' + quoted + '"';
  };
  const char separator = kind == Kind::kTsv ? '\t' : ',';
  std::string text = std::string("text") + separator + "id\n";
  for (const auto& row : rows) text += field(row[0]) + separator + field(row[1]) + '\n';
  return text;
}

// Whether the table can be read with this format.
bool Check(const Path& path, const TableFormat& format) {
  Rows rows;
  try {
    rows = Read(path, format);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kData) throw;
    return false;
  }
  // A tab separated row that is empty is a blank line, and a last "\r" belongs to the line's end.
  if (format.kind == Kind::kTsv) {
    for (const auto& row : rows) {
      if (row[1].ends_with('\r')) return true;
    }
  }
  const Path again = InputFile(Written(rows, format.kind), "again");
  SYNTRA_CHECK(Read(again, {.kind = format.kind}) == rows);
  return true;
}

void Run(std::string_view input) {
  const Path path = InputFile(input, "input");
  bool read = false;
  for (const Kind kind : {Kind::kCsv, Kind::kTsv}) {
    for (const bool header : {true, false}) read |= Check(path, {.kind = kind, .header = header});
  }
  const Path corpus = InputFile(input, "input.csv");
  const auto reader = OpenRecordReader(corpus, "text");
  for (Record record; reader->Next(&record);) {
  }
  SYNTRA_CHECK(read);
}

std::vector<std::string> Seeds() {
  return {"id,text\n1,\"a, \"\"quoted\"\"\nline\"\r\n2,plain\n\n3,last", "text\nalone\n",
          "text,id\n\"\",\"x\"\n", "\xef\xbb\xbfid,text,more\r\n1,d\xc3\xb6,\r\n"};
}

}  // namespace

const Target fuzz_delimited_records = {
    .name = "delimited_records",
    .refusals = {ExitCode::kData},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"", "\"\"", ",", "\t", "\n", "\r\n", "text", "id", "\xef\xbb\xbf"},
    .mutations = 3000};

}  // namespace syntra
