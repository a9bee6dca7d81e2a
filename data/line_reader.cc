// SPDX-License-Identifier: Apache-2.0
#include "data/line_reader.h"

#include "data/record_reader.h"

namespace syntra {

void LineReader::SkipToNewline() {
  do {
    const size_t newline = stream_.unread().find('\n');
    if (newline != std::string_view::npos) return stream_.Take(newline + 1);
    stream_.Take(stream_.unread().size());
  } while (stream_.ReadMore());
}

bool LineReader::Next(Line* line) {
  size_t searched = 0;
  while (true) {
    const std::string_view unread = stream_.unread();
    const size_t newline = unread.find('\n', searched);
    const bool complete = newline != std::string_view::npos;
    const std::string_view text = unread.substr(0, newline);
    if (text.size() > kMaxRecordBytes) {
      *line = {.offset = stream_.offset(), .number = ++number_, .too_long = true};
      SkipToNewline();
      return true;
    }
    if (complete || (stream_.at_end() && !unread.empty())) {
      *line = {.text = text, .offset = stream_.offset(), .number = ++number_, .complete = complete};
      stream_.Take(text.size() + (complete ? 1 : 0));
      return true;
    }
    searched = unread.size();
    if (!stream_.ReadMore() && stream_.unread().empty()) return false;
  }
}

}  // namespace syntra
