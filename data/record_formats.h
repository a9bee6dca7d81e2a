// The formats behind OpenRecordReader.
#pragma once

#include <memory>
#include <string>

#include "data/byte_source.h"
#include "data/record_reader.h"

namespace syntra {

// An object a line, the document in one of its string fields.
std::unique_ptr<RecordReader> MakeJsonReader(std::unique_ptr<ByteSource> source,
                                             std::string text_field);

// A document a line.
std::unique_ptr<RecordReader> MakeTextReader(std::unique_ptr<ByteSource> source);

// TFRecord frames of tf.Example messages.
std::unique_ptr<RecordReader> MakeTfRecordReader(std::unique_ptr<ByteSource> source, Path path,
                                                 std::string text_feature);

// True if `bytes` starts with a TFRecord length whose checksum is right.
bool StartsLikeTfRecord(std::span<const std::byte> bytes);

}  // namespace syntra
