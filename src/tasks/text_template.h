// SPDX-License-Identifier: Apache-2.0
// Texts with fields of a record in braces: "mnli hypothesis: {sentence2} premise: {sentence1}".
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace syntra {

class TextTemplate {
 public:
  // "{name}" is a field, "{{" and "}}" are braces. Throws Error(kConfig) if braces do not match.
  explicit TextTemplate(std::string_view text);
  // A field after `prefix`, whose braces mean nothing.
  static TextTemplate After(std::string_view prefix, std::string field);

  // The names of its fields, in order.
  const std::vector<std::string>& fields() const { return fields_; }

  // The text with `value(i)` in the place of fields()[i].
  std::string Fill(const std::function<std::string_view(size_t)>& value) const;

 private:
  TextTemplate() = default;

  std::vector<std::string> literals_;  // before each field, and after the last
  std::vector<std::string> fields_;
};

}  // namespace syntra
