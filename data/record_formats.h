// SPDX-License-Identifier: Apache-2.0
// The file formats that OpenRecordReader knows.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "data/record_reader.h"

namespace syntra {

// Opens a file with one JSON object a line. The document is the string field `text_field`.
std::unique_ptr<RecordReader> OpenJsonRecords(const Path& path, const std::string& text_field);
bool StartsLikeJson(std::span<const std::byte> bytes);

// Opens a file with one document a line. `text_field` is ignored.
std::unique_ptr<RecordReader> OpenTextRecords(const Path& path, const std::string& text_field);

// TFRecord frames of tf.Example messages. The document is the feature `text_field`.
std::unique_ptr<RecordReader> OpenTfRecords(const Path& path, const std::string& text_field);
// True if `bytes` starts with a TFRecord length whose checksum is right.
bool StartsLikeTfRecords(std::span<const std::byte> bytes);
// Throws Error(kData) if a file that is not gzipped does not end with a whole record.
void CheckEndOfTfRecords(const Path& path);

// A header row, then rows with as many fields. The document is the column `text_field`. Csv follows
// RFC 4180; tsv has no quotes and no escapes.
std::unique_ptr<RecordReader> OpenCsvRecords(const Path& path, const std::string& text_field);
std::unique_ptr<RecordReader> OpenTsvRecords(const Path& path, const std::string& text_field);

// Opens files of these formats as tables: see OpenTable.
std::unique_ptr<RecordReader> OpenJsonTable(const Path& path, std::vector<TableField> fields);
std::unique_ptr<RecordReader> OpenDelimitedTable(const Path& path, const TableFormat& format,
                                                 std::vector<TableField> fields);

// A column of a Parquet file. Builds without Apache Arrow refuse the file and say what to do.
std::unique_ptr<RecordReader> OpenParquetRecords(const Path& path, const std::string& text_field);
bool StartsLikeParquet(std::span<const std::byte> bytes);
// Whether this build has Apache Arrow.
bool ReadsParquet();

// Names for a message: `"url", "content"`. Long lists and long names are cut short.
std::string QuotedNames(std::span<const std::string> names);

}  // namespace syntra
