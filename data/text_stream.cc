// SPDX-License-Identifier: Apache-2.0
#include "data/text_stream.h"

#include <cstring>

#include "base/error.h"
#include "base/utf8.h"

namespace syntra {
namespace {

using std::string_view_literals::operator""sv;

}  // namespace

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
  return count > 0;
}

void TextStream::SkipByteOrderMark() {
  at_start_ = false;
  const std::string_view text = unread();
  // The little-endian mark of UTF-32 starts with that of UTF-16.
  for (const auto& [mark, name] : {std::pair{"\xFF\xFE\0\0"sv, "UTF-32"},
                                   {"\0\0\xFE\xFF"sv, "UTF-32"},
                                   {"\xFF\xFE"sv, "UTF-16"},
                                   {"\xFE\xFF"sv, "UTF-16"}}) {
    if (!text.starts_with(mark)) continue;
    Fail(ExitCode::kData,
         "{}: byte 0: the text is {}, as its byte-order mark says; convert it to UTF-8, for "
         "example with \"iconv -f {} -t UTF-8\"",
         path().string(), name, name);
  }
  if (text.starts_with(kByteOrderMark)) Take(3);
}

}  // namespace syntra
