#include "config/problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace syntra {

std::string Location::Text() const {
  return line > 0 ? fmt::format("{}:{}:{}", source, line, column) : source;
}

void Problems::Add(Location where, std::string message) {
  list_.push_back({std::move(where), std::move(message)});
}

std::string Problems::Text() const {
  // A binary file given by mistake has thousands of problems; nobody reads past the first.
  constexpr size_t kMaxListed = 200;
  std::string text;
  for (size_t i = 0; i < std::min(list_.size(), kMaxListed); ++i) {
    const std::string where = list_[i].where.Text();
    text += fmt::format("error: {}{}{}\n", where, where.empty() ? "" : ": ", list_[i].message);
  }
  if (list_.size() > kMaxListed)
    text += fmt::format("(only the first {} are listed)\n", kMaxListed);
  return text + fmt::format("{} error{}", list_.size(), list_.size() == 1 ? "" : "s");
}

void Problems::ThrowIfAny() const {
  if (!empty()) throw Error(ExitCode::kConfig, Text());
}

std::string Quoted(std::string_view text) {
  constexpr int kMaxCharacters = 40;
  std::string quoted = "\"";
  int characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = text[i];
    const bool continues = (byte & 0xC0) == 0x80;
    if (!continues && ++characters > kMaxCharacters) return quoted + "...\"";
    if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += text[i];
    }
  }
  return quoted + "\"";
}

}  // namespace syntra
