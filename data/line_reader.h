// Lines of a byte stream, with their byte offsets in the (uncompressed) stream and their numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/byte_source.h"

namespace syntra {

struct Line {
  std::string_view text;  // without its newline; valid until the next call
  int64_t offset = 0;     // of the first byte, in the uncompressed stream
  int64_t number = 0;     // from 1
  bool complete = true;   // ended by a newline
  bool too_long = false;  // longer than LineReader::kMaxBytes; `text` is empty, the line is skipped
};

class LineReader {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  // Readable bytes behind every line, which SIMD parsers ask for.
  static constexpr size_t kPadding = 64;

  explicit LineReader(std::unique_ptr<ByteSource> source);

  bool Next(Line* line);

 private:
  // Reads more bytes behind the unread ones; false at the end of the stream.
  bool ReadMore();
  void SkipToNewline();

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread bytes in buffer_
  int64_t offset_ = 0;          // stream offset of begin_
  int64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace syntra
