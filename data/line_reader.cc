#include "data/line_reader.h"

#include <cstring>

namespace syntra {
namespace {
constexpr size_t kBlockBytes = size_t{1} << 20;
}

LineReader::LineReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(2 * kBlockBytes + kPadding) {}

bool LineReader::ReadMore() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() < end_ + kBlockBytes + kPadding) {
    buffer_.resize(2 * (end_ + kBlockBytes) + kPadding);
  }
  const auto space = std::as_writable_bytes(std::span(buffer_)).subspan(end_, kBlockBytes);
  const size_t count = source_->Read(space);
  end_ += count;
  at_end_ = count < kBlockBytes;
  return count > 0;
}

void LineReader::SkipToNewline() {
  while (true) {
    const char* first = buffer_.data() + begin_;
    if (const void* newline = std::memchr(first, '\n', end_ - begin_)) {
      const size_t length = static_cast<const char*>(newline) - first + 1;
      begin_ += length;
      offset_ += static_cast<int64_t>(length);
      return;
    }
    offset_ += static_cast<int64_t>(end_ - begin_);
    begin_ = end_;
    if (!ReadMore()) return;
  }
}

bool LineReader::Next(Line* line) {
  size_t searched = 0;
  while (true) {
    const char* first = buffer_.data() + begin_;
    const size_t unread = end_ - begin_;
    const void* newline = std::memchr(first + searched, '\n', unread - searched);
    const size_t length = newline ? static_cast<const char*>(newline) - first : unread;
    if (length > kMaxBytes) {
      *line = {.offset = offset_, .number = ++number_, .too_long = true};
      SkipToNewline();
      return true;
    }
    if (newline || (at_end_ && unread > 0)) {
      *line = {.text = {first, length},
               .offset = offset_,
               .number = ++number_,
               .complete = newline != nullptr};
      const size_t consumed = length + (newline ? 1 : 0);
      begin_ += consumed;
      offset_ += static_cast<int64_t>(consumed);
      return true;
    }
    searched = unread;
    if (!ReadMore() && end_ == begin_) return false;
  }
}

}  // namespace syntra
