// SPDX-License-Identifier: Apache-2.0
// Splits protobuf text format into tokens, each with its place. Goes on after an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"

namespace syntra {

enum class TokenKind {
  kEnd,
  kIdentifier,
  kNumber,  // a digit, '.' or '-' and all that could belong to a number; may be malformed
  kString,  // one literal, quotes included
  kSymbol,  // one of { } < > [ ] : , ;
  kBad,     // already reported
};

struct Token {
  TokenKind kind;
  std::string_view text;
  int line;
  int column;

  bool Is(char symbol) const { return kind == TokenKind::kSymbol && text[0] == symbol; }
};

// The tokens of `text`, which must outlive them; the last is kEnd. Bytes that are not UTF-8,
// unterminated strings and characters outside the grammar are added to `problems` as places in
// `source`.
std::vector<Token> Tokenize(const std::string& source, std::string_view text, Problems* problems);

// The content of a kString token. Returns false and says why in `message` if an escape is wrong.
bool Unescape(std::string_view literal, std::string* content, std::string* message);

}  // namespace syntra
