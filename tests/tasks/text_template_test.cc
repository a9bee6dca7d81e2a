// SPDX-License-Identifier: Apache-2.0
#include "tasks/text_template.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace syntra {
namespace {

std::string Filled(const std::string& text) {
  const TextTemplate form(text);
  return form.Fill([&](size_t i) { return std::string_view(form.fields()[i]); });
}

TEST(TextTemplate, PutsFieldsInThePlaceOfBraces) {
  EXPECT_EQ(TextTemplate("a {b} {c d}{#1}").fields(), (std::vector<std::string>{"b", "c d", "#1"}));
  EXPECT_EQ(Filled("a {b} {c d}{#1}"), "a b c d#1");
  EXPECT_EQ(Filled("{{x}} {y}}}"), "{x} y}");
  EXPECT_EQ(Filled(""), "");
}

TEST(TextTemplate, BracesMustMatch) {
  for (const char* text : {"{", "a}", "{}", "{a", "{{a}"})
    EXPECT_THROW(TextTemplate{text}, Error) << text;
}

}  // namespace
}  // namespace syntra
