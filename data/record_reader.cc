// SPDX-License-Identifier: Apache-2.0
#include "data/record_reader.h"

#include <algorithm>
#include <cctype>
#include <new>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/byte_source.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

bool StartsLikeParquet(std::span<const std::byte> bytes) {
  return std::ranges::equal(bytes.first(std::min<size_t>(bytes.size(), 4)),
                            std::as_bytes(std::span("PAR1", 4)));
}

struct Format {
  std::vector<std::string_view> extensions;
  std::unique_ptr<RecordReader> (*open)(const Path& path, const std::string& text_field);
  // Whether a file that starts with these bytes has this format; null if the bytes cannot tell.
  bool (*starts_like)(std::span<const std::byte> bytes) = nullptr;
};

// Each format has a row here and a file of its own (README.md, "Adding a format").
const Format kFormats[] = {
    {{".json", ".jsonl", ".ndjson"}, OpenJsonRecords, StartsLikeJson},
    {{".txt", ".tokens"}, OpenTextRecords},
    {{".tfrecord", ".tfrecords"}, OpenTfRecords, StartsLikeTfRecords},
    {{".csv"}, OpenCsvRecords},
    {{".tsv"}, OpenTsvRecords},
    {{".parquet"}, OpenParquetRecords, StartsLikeParquet},
};

// ".tfrecord-00000-of-00008" counts as ".tfrecord".
bool IsExtension(std::string_view extension, std::string_view wanted) {
  return extension.starts_with(wanted) &&
         (extension.size() == wanted.size() || !std::isalnum(extension[wanted.size()]));
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

}  // namespace

bool RecordReader::Next(Record* record) {
  *record = {};
  try {
    if (!Read(record)) return false;
  } catch (const std::bad_alloc&) {
    const bool known = record->line > 0;
    Fail(ExitCode::kResources, "{}: out of memory while reading the record {} byte {}, line {}",
         path_.string(), known ? "at" : "behind", known ? record->offset : offset_,
         known ? record->line : line_);
  }
  if (record->fault != RecordFault::kNone) record->text = {};
  offset_ = record->offset;
  line_ = record->line;
  return true;
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
  const Format* format = FormatOfName(path);
  if (!format) format = FormatOfContent(path);
  if (!format) {
    Fail(ExitCode::kData,
         "{}: neither its name nor its first bytes tell its format; name it {}, each but the last "
         "also with .gz",
         path.string(), ListOfExtensions());
  }
  try {
    return format->open(path, text_field);
  } catch (const std::bad_alloc&) {
    Fail(ExitCode::kResources, "{}: out of memory while opening it", path.string());
  }
}

}  // namespace syntra
