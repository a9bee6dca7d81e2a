// SPDX-License-Identifier: Apache-2.0
// Named constants of an op call: "heads" = 8, "causal" = true, "epsilon" = 1e-6, "axes" = [0, 2,
// 1]. They keep the order in which they were given, so that printed programs are stable.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/shape.h"

namespace syntra {

class Attributes {
 public:
  using Integers = std::vector<int64_t>;
  using Value = std::variant<bool, int64_t, double, std::string, Integers>;

  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Value>> entries) : entries_(entries) {}

  // Each throws Error(kInternal) if the attribute is missing or has another type.
  bool Flag(std::string_view name) const;
  int64_t Int(std::string_view name) const;
  double Number(std::string_view name) const;
  const std::string& Text(std::string_view name) const;
  const Integers& List(std::string_view name) const;

  bool empty() const { return entries_.empty(); }
  std::string ToString() const;  // "heads=8 causal=true"
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  template <typename T>
  const T& Get(std::string_view name) const;

  std::vector<std::pair<std::string, Value>> entries_;
};

// A shape as an attribute.
inline Attributes::Integers IntegersOf(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

}  // namespace syntra
