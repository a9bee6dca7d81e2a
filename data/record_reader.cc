#include "data/record_reader.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

enum class Format { kJson, kText, kTfRecord };

// The name is asked part by part from the end, so that "c4.tfrecord.txt" is text.
bool FormatFromName(const Path& path, Format* format) {
  Path name = path.filename();
  while (name.has_extension()) {
    const std::string extension = name.extension().string();
    if (extension == ".json" || extension == ".jsonl") return *format = Format::kJson, true;
    if (extension == ".txt" || extension == ".tokens") return *format = Format::kText, true;
    if (extension.starts_with(".tfrecord")) return *format = Format::kTfRecord, true;
    name = name.stem();
  }
  return false;
}

Format FormatFromContent(const Path& path) {
  std::byte first[64];
  const size_t count = OpenByteSource(path)->Read(first);
  const auto bytes = std::span<const std::byte>(first).first(count);
  if (StartsLikeTfRecord(bytes)) return Format::kTfRecord;
  const std::string_view text(reinterpret_cast<const char*>(first), count);
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && text[start] == '{') return Format::kJson;
  if (count == 0) return Format::kText;
  Fail(
      ExitCode::kData,
      "{}: neither its name nor its first bytes tell its format; name it *.json, *.jsonl, *.txt or "
      "*.tfrecord, each also with .gz",
      path.string());
}

}  // namespace

std::unique_ptr<RecordReader> OpenRecordReader(const Path& path, const std::string& text_field) {
  Format format;
  if (!FormatFromName(path, &format)) format = FormatFromContent(path);
  std::unique_ptr<ByteSource> source = OpenByteSource(path);
  switch (format) {
    case Format::kJson:
      return MakeJsonReader(std::move(source), text_field);
    case Format::kText:
      return MakeTextReader(std::move(source));
    case Format::kTfRecord:
      return MakeTfRecordReader(std::move(source), path, text_field);
  }
  return nullptr;
}

}  // namespace syntra
