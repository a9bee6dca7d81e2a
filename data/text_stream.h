// SPDX-License-Identifier: Apache-2.0
// A buffered text file. Callers look at the unread bytes and take those that they have parsed. A
// UTF-8 byte-order mark at the start of the (uncompressed) stream is skipped. The end of a file
// whose only line ends are carriage returns, as on old Macs, logs a warning, once: all of it is one
// line.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/byte_source.h"

namespace syntra {

class TextStream {
 public:
  // Number of readable bytes after the unread ones, as SIMD parsers need them.
  static constexpr size_t kPadding = 64;

  explicit TextStream(std::unique_ptr<ByteSource> source);

  // The bytes that were read and not yet taken; valid until the next ReadMore.
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }
  // Reads more bytes after the unread ones; false at the end of the stream. Throws Error(kData) if
  // the stream starts with the byte-order mark of UTF-16 or UTF-32.
  bool ReadMore();
  void Take(size_t bytes) { begin_ += bytes, offset_ += static_cast<int64_t>(bytes); }

  // Whether the unread bytes are the last ones. Becomes true when ReadMore reaches the end.
  bool at_end() const { return at_end_; }
  // Position of the first unread byte in the uncompressed stream, byte-order mark included.
  int64_t offset() const { return offset_; }
  const Path& path() const { return source_->path(); }

 private:
  void SkipByteOrderMark();
  void LookForLineEnds(std::string_view more);

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread bytes in buffer_
  int64_t offset_ = 0;          // stream offset of begin_
  bool at_start_ = true, at_end_ = false;
  bool has_newline_ = false;
  bool ends_in_return_ = false, has_inner_return_ = false;  // of what was read before any newline
};

}  // namespace syntra
