// SPDX-License-Identifier: Apache-2.0
#include "data/text_stream.h"

#include <cstring>

#include "base/log.h"
#include "base/utf8.h"

namespace syntra {

TextStream::TextStream(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(kFirstBlockBytes + kPadding) {}

bool TextStream::ReadMore() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const size_t block = at_start_ ? kFirstBlockBytes : kBlockBytes;
  if (buffer_.size() < end_ + block + kPadding) buffer_.resize(2 * (end_ + block) + kPadding);
  const auto space = std::as_writable_bytes(std::span(buffer_)).subspan(end_, block);
  const size_t count = source_->Read(space);
  end_ += count;
  at_end_ = count < block;
  if (at_start_) SkipByteOrderMark();
  LookForLineEnds({buffer_.data() + end_ - count, count});
  return count > 0;
}

void TextStream::SkipByteOrderMark() {
  at_start_ = false;
  Take(unread().size() - WithoutByteOrderMark(unread(), path().string()).size());
}

void TextStream::LookForLineEnds(std::string_view more) {
  if (has_newline_) return;
  has_newline_ = more.find('\n') != more.npos;
  if (!has_newline_ && !more.empty()) {
    has_inner_return_ |= ends_in_return_ || more.find('\r') < more.size() - 1;
    ends_in_return_ = more.ends_with('\r');
  }
  if (!at_end_ || has_newline_ || !has_inner_return_) return;
  WarnOnce(fmt::format(
      "{}: it has carriage returns and no newline, so all of it is one line; if they are line ends "
      "(as on old Macs), put newlines in their place: tr '\\r' '\\n'",
      path().string()));
}

}  // namespace syntra
