// SPDX-License-Identifier: Apache-2.0
// Documents of a corpus file, one after the other, with their places in the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/bad_record.h"

namespace syntra {

// A longer record is a bad one.
inline constexpr size_t kMaxRecordBytes = size_t{64} << 20;

struct Record {
  std::string_view text;  // UTF-8 without NUL; valid until the next call; empty if bad
  int64_t offset = 0;     // of the record's first byte in the uncompressed stream
  int64_t line = 0;       // line, or record number where a format has no lines; from 1
  RecordFault fault = RecordFault::kNone;
  std::string detail{};  // of a bad record: what the fault alone does not say
  // Of a table: the fields that OpenTable was asked for, in that order; valid as `text` is. One
  // that the record does not have (an optional one) is absent.
  std::span<const std::optional<std::string>> fields{};
};

class RecordReader {
 public:
  explicit RecordReader(Path path) : path_(std::move(path)) {}
  virtual ~RecordReader() = default;

  // The next document or bad record; false at the end of the file. Damage that makes the rest of
  // the file untrustworthy (gzip, TFRecord framing) throws Error(kData) with file, byte offset and
  // reason; a shortage of memory, which says nothing about the record, Error(kResources) with its
  // place.
  bool Next(Record* record);

  const Path& path() const { return path_; }

 protected:
  // What Next does, into a fresh record; may throw std::bad_alloc. Place first, then what can fail.
  virtual bool Read(Record* record) = 0;

 private:
  Path path_;
  int64_t offset_ = 0, line_ = 0;  // of the last record
};

// The format follows from the name (README.md lists them; each also .gz, but for Parquet) or, where
// the name says nothing, from the first bytes. `text_field` is the JSON field, tf.Example feature
// or column that holds a document; text files hold a document a line, blank lines between them
// meaning nothing. Throws Error(kData) if the file is of no known format or has no such column.
std::unique_ptr<RecordReader> OpenRecordReader(const Path& path, const std::string& text_field);

// A field of a table's records: a column, or a field of a JSON object ("a.b": b of the object a).
struct TableField {
  std::string name;
  bool optional = false;  // else a record without it is a bad one
};

struct TableFormat {
  enum class Kind { kTsv, kCsv, kJsonLines };
  Kind kind = Kind::kTsv;
  // Of tsv and csv: whether the first row names the columns; else they are called "1", "2", ...
  bool header = true;
  int64_t columns = 0;  // without a header: how many there are; 0: as many as in the first row
};

// The format that the end of the name tells (also with .gz); none: it is of no table.
std::optional<TableFormat> TableFormatOf(const Path& path);

// Records with several fields, in Record::fields; Record::text is empty. Strings are UTF-8 without
// NUL; other JSON values are their JSON text ("true", "3"), null is as no field. A header without a
// column that is not optional throws Error(kData).
std::unique_ptr<RecordReader> OpenTable(const Path& path, const TableFormat& format,
                                        std::vector<TableField> fields);

// A look at the end of a file. Throws Error(kData) if it shows that something was cut off: of
// TFRecord files it does, unless they are gzipped. Parquet files are not opened without their end;
// of all others only reading them through would tell.
void CheckEnd(const Path& path);

}  // namespace syntra
