// SPDX-License-Identifier: Apache-2.0
// A text with fields in braces: filled with their own names in braces it is the text again, where
// no brace is doubled.
#include "tasks/text_template.h"

#include "fuzz/target.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const TextTemplate text(input);
  std::vector<std::string> named;
  for (const std::string& field : text.fields()) {
    SYNTRA_CHECK(!field.empty());
    named.push_back("{" + field + "}");
  }
  const std::string filled = text.Fill([&](size_t i) -> std::string_view { return named[i]; });
  if (input.find("{{") == input.npos && input.find("}}") == input.npos) {
    SYNTRA_CHECK(filled == input, "{}", filled);
  }
}

std::vector<std::string> Seeds() {
  return {"mnli hypothesis: {sentence2} premise: {sentence1}", "{a}{b.c}", "no field", "{{ {a} }}"};
}

}  // namespace

const Target fuzz_text_template = {.name = "text_template",
                                   .refusals = {ExitCode::kConfig},
                                   .run = Run,
                                   .seeds = Seeds,
                                   .tokens = {"{", "}", "{{", "}}", "{a}"},
                                   .mutations = 2000};

}  // namespace syntra
