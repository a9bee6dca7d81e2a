// SPDX-License-Identifier: Apache-2.0
#include "config/token.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace syntra {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool StartsCharacter(char byte) { return !ContinuesCharacter(byte); }
bool EndsPath(char c) {
  return IsSpace(c) || std::string_view("{}<>[],;#").find(c) != std::string_view::npos;
}

class Scanner {
 public:
  Scanner(const std::string& source, std::string_view text, Problems* problems)
      : source_(source), text_(text), problems_(problems) {}

  std::vector<Token> Run() {
    StartLine();
    for (SkipBlank(); position_ < text_.size(); SkipBlank()) Next();
    tokens_.push_back({TokenKind::kEnd, text_.substr(text_.size()), line_, Column()});
    return std::move(tokens_);
  }

 private:
  char At(size_t offset) const {
    return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
  }

  int Column() {
    for (; counted_ < position_; ++counted_) column_ += StartsCharacter(text_[counted_]);
    return column_;
  }

  // A sequence of bytes for one character never holds a line feed, so lines can be judged one by
  // one.
  void StartLine() {
    counted_ = position_;
    column_ = 1;
    const std::string_view rest = text_.substr(position_);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const size_t valid = ValidPrefix(line);
    line_is_text_ = valid == line.size();
    if (line_is_text_) return;
    const int column = 1 + std::count_if(line.begin(), line.begin() + valid, StartsCharacter);
    problems_->Add({source_, line_, column},
                   line[valid] == '\0' ? "NUL byte; remove it"
                                       : "bytes that are not UTF-8; save the file as UTF-8");
  }

  static size_t ValidPrefix(std::string_view line) {
    for (size_t i = 0; i < line.size();) {
      const unsigned char lead = line[i];
      const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      if (lead == 0 || !IsUtf8(line.substr(i, length))) return i;
      i += length;
    }
    return line.size();
  }

  size_t EndOfLine() const { return std::min(text_.find('\n', position_), text_.size()); }

  void SkipBlank() {
    while (position_ < text_.size()) {
      if (text_[position_] == '\n') {
        ++position_;
        ++line_;
        StartLine();
      } else if (IsSpace(text_[position_])) {
        ++position_;
      } else if (text_[position_] == '#') {
        position_ = EndOfLine();
      } else {
        return;
      }
    }
  }

  void Emit(TokenKind kind, size_t length) {
    tokens_.push_back({kind, text_.substr(position_, length), line_, Column()});
    position_ += length;
  }

  void Next() {
    const char c = At(0);
    if (const size_t length = PathLength()) {
      EmitBad(length,
              fmt::format("put the path {} in quotes", Quoted(text_.substr(position_, length))));
    } else if (IsLetter(c)) {
      size_t length = 1;
      while (IsLetter(At(length)) || IsDigit(At(length))) ++length;
      Emit(TokenKind::kIdentifier, length);
    } else if (IsDigit(c) || c == '.' || c == '-' || c == '+') {
      Emit(TokenKind::kNumber, NumberLength());
    } else if (c == '"' || c == '\'') {
      NextString(c);
    } else if (c != '\0' && std::string_view("{}<>[]:,;").find(c) != std::string_view::npos) {
      Emit(TokenKind::kSymbol, 1);
    } else {
      NextBad();
    }
  }

  // The length of the path without quotes that begins here, such as runs/a, ./a or ~/a; 0 if none
  // does. It is one mistake. The parts of a word without a path are not searched again.
  size_t PathLength() {
    const char c = At(0);
    if (position_ < searched_ || (!IsLetter(c) && c != '/' && c != '.' && c != '~')) return 0;
    const auto ends_name = [](char next) {
      return EndsPath(next) || std::string_view("/:\"'\0", 5).find(next) != std::string_view::npos;
    };
    size_t length = 0;
    while (!ends_name(At(length))) ++length;
    searched_ = position_ + length;
    const bool is_comment = At(length + 1) == '/' || (length == 0 && At(1) == '*');
    if (At(length) != '/' || is_comment) return 0;
    while (position_ + length < text_.size() && !EndsPath(At(length))) ++length;
    return length;
  }

  // Says what is wrong here, unless the whole line was reported.
  void EmitBad(size_t length, std::string message) {
    if (line_is_text_) problems_->Add({source_, line_, Column()}, std::move(message));
    Emit(TokenKind::kBad, length);
  }

  size_t NumberLength() const {
    size_t length = 1;
    for (;; ++length) {
      const char c = At(length), before = At(length - 1);
      const bool exponent_sign = (c == '+' || c == '-') && (before == 'e' || before == 'E');
      if (!IsLetter(c) && !IsDigit(c) && c != '.' && c != '%' && !exponent_sign) return length;
    }
  }

  void NextString(char quote) {
    for (size_t length = 1; position_ + length < text_.size(); ++length) {
      const char c = At(length);
      if (c == '\n') break;
      if (c == quote) return Emit(TokenKind::kString, length + 1);
      if (c == '\\' && At(length + 1) != '\n') ++length;
    }
    problems_->Add({source_, line_, Column()},
                   fmt::format("the string has no closing {} on this line", quote));
    Emit(TokenKind::kBad, EndOfLine() - position_);
  }

  // Up to where what is meant by it may end, so that it is one mistake.
  size_t BadLength() const {
    if (At(0) == '/' && At(1) == '/') return EndOfLine() - position_;
    size_t length = 1;
    while (!StartsCharacter(At(length))) ++length;
    return length;
  }

  // What to write instead of what other languages have.
  std::string_view HintHere() const {
    if (At(0) == '=') return "; in files and braces write FIELD: VALUE";
    return At(0) == '/' ? "; a comment begins with #" : "";
  }

  void NextBad() {
    const size_t length = BadLength();
    const std::string_view token = text_.substr(position_, length);
    EmitBad(length, token == kByteOrderMark
                        ? "byte order mark; save the file as UTF-8 without one"
                        : fmt::format("unexpected character {}{}",
                                      Quoted(token.starts_with('/') ? "/" : token), HintHere()));
  }

  const std::string& source_;
  const std::string_view text_;
  Problems* const problems_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
  size_t searched_ = 0;  // up to where the last word was searched for a path
  int line_ = 1;
  int column_ = 1;      // of the character at counted_
  size_t counted_ = 0;  // how far this line's characters are counted
  bool line_is_text_ = true;
};

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// The value of up to `most` digits of `base` from `text`, which are removed; -1 if there is none.
int TakeDigits(std::string_view* text, int base, int most) {
  int value = -1;
  for (; most > 0 && !text->empty() && HexDigit(text->front()) < base; --most) {
    value = (value < 0 ? 0 : value) * base + HexDigit(text->front());
    text->remove_prefix(1);
  }
  return value;
}

}  // namespace

std::vector<Token> Tokenize(const std::string& source, std::string_view text, Problems* problems) {
  return Scanner(source, text, problems).Run();
}

bool Unescape(std::string_view literal, std::string* content, std::string* message) {
  static constexpr std::string_view kNames = "abfnrtv\\'\"?", kValues = "\a\b\f\n\r\t\v\\'\"?";
  std::string_view rest = literal.substr(1, literal.size() - 2);
  while (!rest.empty()) {
    const char c = rest.front();
    if (c != '\\') {
      *content += c;
      rest.remove_prefix(1);
      continue;
    }
    rest.remove_prefix(1);
    const std::string_view escape = rest;
    int value;
    if (const size_t name = kNames.find(rest.empty() ? '\0' : rest.front());
        name != std::string_view::npos) {
      value = kValues[name];
      rest.remove_prefix(1);
    } else if (!rest.empty() && (rest.front() == 'x' || rest.front() == 'X')) {
      rest.remove_prefix(1);
      value = TakeDigits(&rest, 16, 2);
    } else {
      value = TakeDigits(&rest, 8, 3);
    }
    if (value < 0 || value > 255) {
      *message = fmt::format("unknown escape \\{} in a string; a backslash is written \\\\",
                             IsUtf8(escape.substr(0, 1)) ? escape.substr(0, 1) : "?");
      return false;
    }
    *content += static_cast<char>(value);
  }
  return true;
}

}  // namespace syntra
