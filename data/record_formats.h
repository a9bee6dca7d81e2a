// SPDX-License-Identifier: Apache-2.0
// The formats behind OpenRecordReader.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "data/record_reader.h"

namespace syntra {

// An object a line, the document in one of its string fields.
std::unique_ptr<RecordReader> OpenJsonRecords(const Path& path, const std::string& text_field);
bool StartsLikeJson(std::span<const std::byte> bytes);

// A document a line; `text_field` means nothing.
std::unique_ptr<RecordReader> OpenTextRecords(const Path& path, const std::string& text_field);

// TFRecord frames of tf.Example messages, the document in one of their features.
std::unique_ptr<RecordReader> OpenTfRecords(const Path& path, const std::string& text_field);
// True if `bytes` starts with a TFRecord length whose checksum is right.
bool StartsLikeTfRecords(std::span<const std::byte> bytes);
// Throws Error(kData) if a file that is not gzipped does not end with a whole record.
void CheckEndOfTfRecords(const Path& path);

// A header row, then rows of as many fields, the document in one column. Comma-separated values as
// RFC 4180 has them, and tab-separated ones whose fields are taken as they are.
std::unique_ptr<RecordReader> OpenCsvRecords(const Path& path, const std::string& text_field);
std::unique_ptr<RecordReader> OpenTsvRecords(const Path& path, const std::string& text_field);

// The same as tables: see OpenTable.
std::unique_ptr<RecordReader> OpenJsonTable(const Path& path, std::vector<TableField> fields);
std::unique_ptr<RecordReader> OpenDelimitedTable(const Path& path, const TableFormat& format,
                                                 std::vector<TableField> fields);

// A column of a Parquet file. Builds without Apache Arrow refuse the file and say what to do.
std::unique_ptr<RecordReader> OpenParquetRecords(const Path& path, const std::string& text_field);
bool StartsLikeParquet(std::span<const std::byte> bytes);
// Whether this build has Apache Arrow.
bool ReadsParquet();

// For messages: `"url", "content"`, not more of them and not longer ones than a person would read.
std::string QuotedNames(std::span<const std::string> names);

}  // namespace syntra
