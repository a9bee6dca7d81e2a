// SPDX-License-Identifier: Apache-2.0
#include "data/record_reader.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/byte_source.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

struct Format {
  std::vector<std::string_view> extensions;
  std::unique_ptr<RecordReader> (*open)(const Path& path, const std::string& text_field);
  // Whether a file that starts with these bytes has this format; null if the bytes cannot tell.
  bool (*starts_like)(std::span<const std::byte> bytes) = nullptr;
  // Throws Error(kData) if the end of a file shows that something was cut off; null: it does not
  // tell.
  void (*check_end)(const Path& path) = nullptr;
  std::optional<TableFormat::Kind> table = {};  // absent: its records have one field
};

// Each format has a row here and a file of its own (README.md, "Adding a format").
const Format kFormats[] = {
    {.extensions = {".json", ".jsonl", ".ndjson"},
     .open = OpenJsonRecords,
     .starts_like = StartsLikeJson,
     .table = TableFormat::Kind::kJsonLines},
    {.extensions = {".txt", ".tokens"}, .open = OpenTextRecords},
    {.extensions = {".tfrecord", ".tfrecords"},
     .open = OpenTfRecords,
     .starts_like = StartsLikeTfRecords,
     .check_end = CheckEndOfTfRecords},
    {.extensions = {".csv"}, .open = OpenCsvRecords, .table = TableFormat::Kind::kCsv},
    {.extensions = {".tsv"}, .open = OpenTsvRecords, .table = TableFormat::Kind::kTsv},
    {.extensions = {".parquet"}, .open = OpenParquetRecords, .starts_like = StartsLikeParquet},
};

// ".tfrecord-00000-of-00008" counts as ".tfrecord".
bool IsExtension(std::string_view extension, std::string_view wanted) {
  return extension.starts_with(wanted) &&
         (extension.size() == wanted.size() ||
          !std::isalnum(static_cast<unsigned char>(extension[wanted.size()])));
}

// Looks at the parts of the name from the end, so that "c4.tfrecord.txt" is text.
const Format* FormatOfName(const Path& path) {
  for (Path name = path.filename(); name.has_extension(); name = name.stem()) {
    for (const Format& format : kFormats) {
      for (const std::string_view extension : format.extensions) {
        if (IsExtension(name.extension().string(), extension)) return &format;
      }
    }
  }
  return nullptr;
}

const Format* FormatOfContent(const Path& path) {
  std::byte first[64];
  const size_t count = OpenByteSource(path)->Read(first);
  if (count == 0) return FormatOfName("empty.txt");
  for (const Format& format : kFormats) {
    if (format.starts_like && format.starts_like(std::span(first).first(count))) return &format;
  }
  return nullptr;
}

std::string ListOfExtensions() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.push_back(fmt::format("*{}", format.extensions[0]));
  const std::string last = std::move(names.back());
  names.pop_back();
  return Join(names, ", ") + " or " + last;
}

const Format& FormatOf(const Path& path) {
  const Format* format = FormatOfName(path);
  if (!format) format = FormatOfContent(path);
  if (format) return *format;
  Fail(ExitCode::kData,
       "{}: neither its name nor its first bytes tell its format; name it {}, each but the last "
       "also with .gz",
       path.string(), ListOfExtensions());
}

}  // namespace

bool StartsLikeParquet(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "PAR1", 4) == 0;
}

void CheckEnd(const Path& path) {
  if (const auto check_end = FormatOf(path).check_end) check_end(path);
}

bool RecordReader::Next(Record* record) {
  *record = {};
  try {
    if (!Read(record)) return false;
  } catch (const std::bad_alloc&) {
    const bool known = record->line > 0;
    Fail(ExitCode::kResources, "{}: out of memory while reading the record {} byte {}, line {}",
         path_.string(), known ? "at" : "after", known ? record->offset : offset_,
         known ? record->line : line_);
  }
  if (record->fault != RecordFault::kNone) record->text = {};
  offset_ = record->offset;
  line_ = record->line;
  return true;
}

bool NextGood(RecordReader* reader, BadRecordLedger* ledger, Record* record) {
  while (reader->Next(record)) {
    if (record->fault == RecordFault::kNone) {
      ledger->CountGood();
      return true;
    }
    ledger->CountBad(*record);
  }
  return false;
}

std::string QuotedNames(std::span<const std::string> names) {
  constexpr size_t kMostNames = 20, kMostBytes = 60;
  std::vector<std::string> quoted;
  for (const std::string& name : names.first(std::min(names.size(), kMostNames))) {
    const bool is_long = name.size() > kMostBytes;
    quoted.push_back(JsonText(is_long ? name.substr(0, kMostBytes) + "..." : name));
  }
  return Join(quoted, ", ") + (names.size() > kMostNames ? ", ..." : "");
}

std::unique_ptr<RecordReader> OpenRecordReader(const Path& path, const std::string& text_field) {
  try {
    return FormatOf(path).open(path, text_field);
  } catch (const std::bad_alloc&) {
    Fail(ExitCode::kResources, "{}: out of memory while opening it", path.string());
  }
}

std::optional<TableFormat> TableFormatOf(const Path& path) {
  const Format* format = FormatOfName(path);
  if (!format || !format->table) return std::nullopt;
  return TableFormat{.kind = *format->table};
}

std::unique_ptr<RecordReader> OpenTable(const Path& path, const TableFormat& format,
                                        std::vector<TableField> fields) {
  return format.kind == TableFormat::Kind::kJsonLines
             ? OpenJsonTable(path, std::move(fields))
             : OpenDelimitedTable(path, format, std::move(fields));
}

}  // namespace syntra
