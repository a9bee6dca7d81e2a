// SPDX-License-Identifier: Apache-2.0
#include "kernels/attributes.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace syntra {

template <typename T>
const T& Attributes::Get(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key != name) continue;
    const T* typed = std::get_if<T>(&value);
    SYNTRA_CHECK(typed != nullptr, "attribute {} has another type", name);
    return *typed;
  }
  Fail(ExitCode::kInternal, "no attribute {}", name);
}

bool Attributes::Flag(std::string_view name) const { return Get<bool>(name); }
int64_t Attributes::Int(std::string_view name) const { return Get<int64_t>(name); }
double Attributes::Number(std::string_view name) const { return Get<double>(name); }
const std::string& Attributes::Text(std::string_view name) const { return Get<std::string>(name); }
const Attributes::Integers& Attributes::List(std::string_view name) const {
  return Get<Integers>(name);
}

std::string Attributes::ToString() const {
  std::string text;
  for (const auto& [key, value] : entries_) {
    if (!text.empty()) text += ' ';
    text += key + '=' + std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
  }
  return text;
}

}  // namespace syntra
