// SPDX-License-Identifier: Apache-2.0
#include "config/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"

namespace syntra {

std::string Location::Text() const {
  return line > 0 ? fmt::format("{}:{}:{}", source, line, column) : source;
}

void Problems::Add(Location where, std::string message) {
  list_.push_back({std::move(where), std::move(message)});
}

std::vector<Problem> Problems::InOrder() const {
  std::map<std::string, size_t> source_order;
  for (const Problem& problem : list_) {
    source_order.emplace(problem.where.source, source_order.size());
  }
  const auto key = [&](const Problem& problem) {
    const Location& where = problem.where;
    return std::tuple(source_order.at(where.source), where.line, where.column);
  };
  std::vector<Problem> sorted = list_;
  std::ranges::stable_sort(sorted, {}, key);
  return sorted;
}

std::string Problems::Text() const {
  // A binary file given by mistake has thousands of problems; nobody reads past the first.
  constexpr size_t kMaxListed = 200;
  std::string text;
  const std::vector<Problem> sorted = InOrder();
  for (size_t i = 0; i < std::min(sorted.size(), kMaxListed); ++i) {
    const std::string where = sorted[i].where.Text();
    text += fmt::format("error: {}{}{}\n", where, where.empty() ? "" : ": ", sorted[i].message);
  }
  if (list_.size() > kMaxListed)
    text += fmt::format("(only the first {} are listed)\n", kMaxListed);
  return text + Counted(std::ssize(list_), "error");
}

void Problems::ThrowIfAny() const {
  if (!empty()) throw ConfigError(Text(), InOrder());
}

std::string Quoted(std::string_view text) { return "\"" + Printable(text, 40) + "\""; }

}  // namespace syntra
