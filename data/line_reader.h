// SPDX-License-Identifier: Apache-2.0
// Lines of a text file, with their byte offsets in the (uncompressed) stream and their numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "data/text_stream.h"

namespace syntra {

struct Line {
  std::string_view text;  // without its newline; valid until the next call
  int64_t offset = 0;     // position of the first byte in the uncompressed stream
  int64_t number = 0;     // from 1
  bool complete = true;   // ended by a newline
  bool too_long = false;  // longer than kMaxRecordBytes; `text` is empty, the line is skipped
};

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source) : stream_(std::move(source)) {}

  // False at the end of the stream. At least TextStream::kPadding readable bytes follow the line.
  bool Next(Line* line);

 private:
  void SkipToNewline();

  TextStream stream_;
  int64_t number_ = 0;
};

}  // namespace syntra
