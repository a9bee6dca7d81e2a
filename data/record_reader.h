// Documents of a corpus file, one after the other, with their places in the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "data/bad_record.h"

namespace syntra {

struct Record {
  std::string_view text;  // UTF-8 without NUL; valid until the next call; empty if bad
  int64_t offset = 0;     // of the record's first byte in the uncompressed stream
  int64_t line = 0;       // line, or record number for TFRecord files; from 1
  RecordFault fault = RecordFault::kNone;
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // The next document or bad record; false at the end of the file. Damage that makes the rest of
  // the file untrustworthy (gzip, TFRecord framing) throws Error(kData) with file, byte offset and
  // reason.
  virtual bool Next(Record* record) = 0;
};

// The format follows from the name (.json, .jsonl, .txt, .tokens, "tfrecord"; each also .gz) or,
// where the name says nothing, from the first bytes. `text_field` is the JSON field or tf.Example
// feature that holds a document; text files hold a document a line, blank lines between them
// meaning nothing.
std::unique_ptr<RecordReader> OpenRecordReader(const Path& path, const std::string& text_field);

}  // namespace syntra
