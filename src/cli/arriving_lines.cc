// SPDX-License-Identifier: Apache-2.0
#include "cli/arriving_lines.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace syntra {

std::vector<std::string> ArrivingLines::Next() {
  std::vector<std::string> lines;
  std::vector<char> buffer(size_t{1} << 17);
  while (lines.empty()) {
    const ssize_t count = read(descriptor_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail(ExitCode::kResources, "cannot read the input: {}", SystemErrorText(errno));
    if (count == 0) {
      if (!rest_.empty()) lines.push_back(std::exchange(rest_, ""));
      break;
    }
    for (std::string_view text(buffer.data(), count); !text.empty();) {
      const size_t end = text.find('\n');
      rest_ += text.substr(0, end);
      if (end == text.npos) break;
      lines.push_back(std::exchange(rest_, ""));
      text.remove_prefix(end + 1);
    }
  }
  return lines;
}

}  // namespace syntra
