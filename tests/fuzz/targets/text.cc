// SPDX-License-Identifier: Apache-2.0
// Text from outside on its way to people: it is UTF-8 without commands to a terminal, JSON that
// reads back, lines that fit.
#include "base/text.h"

#include <unistr.h>

#include "base/json.h"
#include "base/utf8.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(input.data());
  SYNTRA_CHECK(IsUtf8(input) == (u8_check(bytes, input.size()) == nullptr));
  const std::string printable = Printable(input);
  SYNTRA_CHECK(IsUtf8(printable) && Printable(printable) == printable);
  for (const char c : printable) SYNTRA_CHECK(c < 0 || (c >= 0x20 && c != 0x7f));
  for (const std::string& line : WrapText(printable, 20)) {
    SYNTRA_CHECK(CodePointCount(line) <= 20, "{}", line);
  }
  const std::string json = JsonText(Json(std::string(input)));
  if (IsUtf8(input)) SYNTRA_CHECK(ParseJson(json).get<std::string>() == input);
  SYNTRA_CHECK(XmlText(input).find('<') == std::string::npos);
  const std::string half(input.substr(input.size() / 2));
  SYNTRA_CHECK(EditDistance(input, input) == 0);
  SYNTRA_CHECK(EditDistance(input, half) <= static_cast<int>(input.size()));
  DidYouMean(input, std::vector<std::string>{"width", half});
}

std::vector<std::string> Seeds() {
  return {"", "plain words and a very-long-word-that-does-not-fit-on-any-line\n\t\x1b[2J\x7f",
          "d\xc3\xb6 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\x9b \xed\xa0\x80 \xf4\x90\x80\x80 <a & b>"};
}

}  // namespace

const Target fuzz_text = {
    .name = "text",
    .refusals = {},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\xc2\x9b", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\x1b[", " "},
    .mutations = 3000,
    .longest = 2048};

}  // namespace syntra
