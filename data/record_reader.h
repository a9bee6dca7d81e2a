// SPDX-License-Identifier: Apache-2.0
// Reads the documents of a corpus file one by one, with their places in the file.
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

// A longer record is a bad record.
inline constexpr size_t kMaxRecordBytes = size_t{64} << 20;

struct Record {
  std::string_view text;  // UTF-8 without NUL; valid until the next call; empty if bad
  int64_t offset = 0;     // position of the record's first byte in the uncompressed stream
  int64_t line = 0;       // line number, or record number in formats without lines; from 1
  RecordFault fault = RecordFault::kNone;
  std::string detail{};  // of a bad record: what the fault alone does not say
  // The fields of a table's record that OpenTable was asked for, in that order; valid as long as
  // `text`. An optional field that the record does not have is absent.
  std::span<const std::optional<std::string>> fields{};
};

class RecordReader {
 public:
  explicit RecordReader(Path path) : path_(std::move(path)) {}
  virtual ~RecordReader() = default;

  // Reads the next document or bad record; false at the end of the file. Throws Error(kData) with
  // file, byte offset and reason on damage that makes the rest of the file unusable (gzip, TFRecord
  // framing), and Error(kResources) with the record's place if memory runs out.
  bool Next(Record* record);

  const Path& path() const { return path_; }

 protected:
  // Reads into an empty record. Must fill in the place first, since Next names it if memory runs
  // out; may throw std::bad_alloc.
  virtual bool Read(Record* record) = 0;

 private:
  Path path_;
  int64_t offset_ = 0, line_ = 0;  // the place of the last record
};

// Reads the next good record. Counts it, and the bad ones before it; false at the end of the file.
bool NextGood(RecordReader* reader, BadRecordLedger* ledger, Record* record);

// The file's name decides the format (README.md lists the endings; all but Parquet also with .gz).
// If the name does not, the first bytes do. `text_field` is the JSON field, tf.Example feature or
// column that holds a document. A text file holds one document a line; blank lines are skipped.
// Throws Error(kData) if the format is unknown or the column does not exist.
std::unique_ptr<RecordReader> OpenRecordReader(const Path& path, const std::string& text_field);

// Every line of a text file, whatever its name; it may be gzipped. Blank ones have the fault
// kEmptyLine.
std::unique_ptr<RecordReader> OpenLines(const Path& path);

// A field of a table's records: a column, or a field of a JSON object ("a.b": b of the object a).
struct TableField {
  std::string name;
  bool optional = false;  // else a record without it is a bad one
  bool nested = false;    // else a record in which it is a JSON object or list is a bad one
};

struct TableFormat {
  enum class Kind { kTsv, kCsv, kJsonLines };
  Kind kind = Kind::kTsv;
  // Whether the first row of a tsv or csv file names the columns; else they are called "1", "2",
  // ...
  bool header = true;
  int64_t columns = 0;  // without a header: how many there are; 0: as many as in the first good row
  const char* advice = "";  // after the error that the header lacks a column
};

// The format that the extension of the name means (also with .gz); none: it is not a table's.
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
