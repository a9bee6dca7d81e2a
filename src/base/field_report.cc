// SPDX-License-Identifier: Apache-2.0
#include "base/field_report.h"

#include <fmt/format.h>

namespace syntra {

std::string FieldPath(const std::string& parent, std::string_view field) {
  if (parent.empty()) return std::string(field);
  return field.empty() ? parent : fmt::format("{}.{}", parent, field);
}

std::string ElementPath(const std::string& list, int index) {
  return fmt::format("{}[{}]", list, index);
}

}  // namespace syntra
