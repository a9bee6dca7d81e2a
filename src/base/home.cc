// SPDX-License-Identifier: Apache-2.0
#include "base/home.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/text.h"

namespace syntra {

std::string HomeFault(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return "";
  const char* home = std::getenv("HOME");
  return fmt::format(
      "\"{}\" begins with \"~\", which only a shell replaces, and not everywhere; write the whole "
      "path{}",
      Printable(path),
      home && *home ? fmt::format(", \"{}\"", Printable(home + path.substr(1))) : "");
}

}  // namespace syntra
