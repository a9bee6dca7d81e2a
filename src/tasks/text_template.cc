// SPDX-License-Identifier: Apache-2.0
#include "tasks/text_template.h"

#include <utility>

#include "base/error.h"

namespace syntra {

TextTemplate::TextTemplate(std::string_view text) : literals_(1) {
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool is_doubled = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && is_doubled) {
      literals_.back() += c;
      ++at;
    } else if (c == '{') {
      const size_t end = text.find('}', at);
      if (end == std::string_view::npos || end == at + 1) {
        Fail(ExitCode::kConfig,
             "\"{}\": after the brace at character {} there must be the name of a field and "
             "\"}}\"; a brace of the text itself is doubled",
             text, at + 1);
      }
      fields_.emplace_back(text.substr(at + 1, end - at - 1));
      literals_.emplace_back();
      at = end;
    } else if (c == '}') {
      Fail(
          ExitCode::kConfig,
          "\"{}\": the brace at character {} closes nothing; a brace of the text itself is doubled",
          text, at + 1);
    } else {
      literals_.back() += c;
    }
  }
}

TextTemplate TextTemplate::After(std::string_view prefix, std::string field) {
  TextTemplate made;
  made.literals_ = {std::string(prefix), ""};
  made.fields_ = {std::move(field)};
  return made;
}

std::string TextTemplate::Fill(const std::function<std::string_view(size_t)>& value) const {
  std::string text = literals_[0];
  for (size_t i = 0; i < fields_.size(); ++i) {
    text += value(i);
    text += literals_[i + 1];
  }
  return text;
}

}  // namespace syntra
