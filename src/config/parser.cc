// SPDX-License-Identifier: Apache-2.0
#include "config/parser.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/scalar.h"
#include "config/suggest.h"
#include "config/token.h"

namespace syntra {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 64;
// A text with this many errors is not a configuration.
constexpr size_t kMaxProblems = 1000;
// A text with more errors than this, and no field that could be read, was never meant as one.
constexpr size_t kMostOfConfiguration = 10;

char Closer(char opener) { return opener == '{' ? '}' : opener == '<' ? '>' : ']'; }

bool Opens(const Token& token) { return token.Is('{') || token.Is('<') || token.Is('['); }
bool Closes(const Token& token) { return token.Is('}') || token.Is('>') || token.Is(']'); }

std::string Shown(const Token& token) {
  return token.kind == TokenKind::kEnd ? "the end" : Quoted(token.text);
}

// Whether a field within another one is named as after --set, ".steps" behind "train".
bool IsDotted(std::string_view text) {
  return text.size() > 1 && text[0] == '.' && text[1] >= 'a' && text[1] <= 'z';
}

// How it is written in a file: "train { steps: ... }".
std::string InBraces(const std::string& field, std::string_view rest) {
  std::vector<std::string> names = Split(rest, '.');
  names.front() = field;
  const size_t depth = names.size() - 1;
  std::string text = Join(names, " { ") + ": ...";
  for (size_t i = 0; i < depth; ++i) text += " }";
  return "; write " + text;
}

class Parser {
 public:
  // Reports places as `source`:line:column, or all as `source` alone for an override.
  Parser(const std::string& source, std::string_view text, bool lines, Layer* layer,
         Problems* problems)
      : source_(source),
        lines_(lines),
        layer_(*layer),
        problems_(*problems),
        before_(problems->list().size()) {
    Problems found;
    tokens_ = Tokenize(source, text, &found);
    has_bad_tokens_ = !found.list().empty();
    for (const Problem& problem : found.list()) {
      problems->Add(lines ? problem.where : Location{source}, problem.message);
    }
  }

  void ParseAll() { ParseFields(&layer_.config, "", nullptr, 0); }

  // How many unknown names were used as those of fields: the text is written as configurations are.
  size_t unknown_fields() const { return unknown_fields_; }

  // The value of `field` alone, up to the end of the text.
  void ParseOneValue(Message* message, const FieldDescriptor* field, const std::string& path) {
    ParseValue(message, field, path, Peek(), 0);
    if (has_bad_tokens_) layer_.broken.insert(path);
    // The rest of a wrong value is not a second mistake.
    if (Peek().kind == TokenKind::kEnd || problems_.list().size() > before_) return;
    ReportValue(Peek(), path, fmt::format("unexpected {} after the value", Shown(Peek())));
  }

 private:
  // Fields that one pair of braces sets: number and line of each.
  using Seen = std::map<int, Location>;

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  const Token& Take() {
    const Token& token = Peek();
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }
  bool TakeIf(char symbol) {
    if (!Peek().Is(symbol)) return false;
    Take();
    return true;
  }

  Location At(const Token& token) const {
    return lines_ ? Location{source_, token.line, token.column} : Location{source_};
  }

  void Report(const Token& token, std::string message) {
    if (token.kind == TokenKind::kBad) return;  // reported when it was read
    problems_.Add(At(token), std::move(message));
    if (problems_.list().size() >= kMaxProblems) next_ = tokens_.size() - 1;
  }

  // Reports a wrong value of `path`; checks that depend on the field are then left out.
  void ReportValue(const Token& token, const std::string& path, std::string message) {
    layer_.broken.insert(path);
    Report(token, fmt::format("{}: {}", path, message));
  }

  // Up to the brace that closes `open`; up to the end of the text if `open` is null.
  void ParseFields(Message* message, const std::string& path, const Token* open, int depth) {
    Seen seen;
    for (;;) {
      const Token& token = Peek();
      if (token.kind == TokenKind::kEnd) {
        if (open) Report(*open, fmt::format("this {} is never closed", open->text));
        return;
      }
      if (open && token.Is(Closer(open->text[0]))) {
        Take();
        return;
      }
      if (Closes(token)) {
        Report(token, open
                          ? fmt::format("expected \"{}\" to close the \"{}\" of line {}, found {}",
                                        Closer(open->text[0]), open->text, open->line, Shown(token))
                          : fmt::format("this {} closes nothing", Shown(token)));
        Take();
        if (open) return;
      } else if (token.kind != TokenKind::kIdentifier) {
        Report(token, fmt::format("expected a field name, found {}", Shown(token)));
        Recover();
      } else {
        ParseField(message, path, depth, &seen);
      }
    }
  }

  void ParseField(Message* message, const std::string& path, int depth, Seen* seen) {
    const Token& name = Take();
    const auto* field = message->GetDescriptor()->FindFieldByName(std::string(name.text));
    if (!field) {
      const UnknownField unknown{*message->GetDescriptor(), path, std::string(name.text)};
      const std::vector<std::string> meant = MeantFields(unknown);
      layer_.broken.insert(meant.begin(), meant.end());
      Report(name, UnknownFieldMessage(unknown, meant));
      if (Peek().Is(':') || Opens(Peek())) ++unknown_fields_;
      SkipValue();
    } else {
      const std::string field_path = FieldPath(path, field->name());
      const bool twice = ReportIfSetTwice(field, name, field_path, seen);
      const bool colon = TakeIf(':');
      if (twice) {
        SkipValue();
      } else if (!colon && !field->message_type() && !Peek().Is('[')) {
        ReportValue(Peek(), field_path, fmt::format("expected \":\", found {}", Shown(Peek())));
        if (Peek().line == name.line) Recover();
      } else if (!colon && !field->message_type()) {
        ReportValue(Peek(), field_path, "expected \":\" before the list");
        SkipValue();
      } else {
        ParseValue(message, field, field_path, name, depth);
      }
    }
    if (Peek().Is(',') || Peek().Is(';')) Take();
  }

  bool ReportIfSetTwice(const FieldDescriptor* field, const Token& name, const std::string& path,
                        Seen* seen) {
    if (field->is_repeated()) return false;
    const auto line = [](const Location& where) {
      return where.line > 0 ? fmt::format(" on line {}", where.line) : std::string();
    };
    const auto [first, is_new] = seen->emplace(field->number(), At(name));
    if (!is_new) {
      ReportValue(name, path, fmt::format("is already set{}", line(first->second)));
      return true;
    }
    const auto* oneof = field->containing_oneof();
    for (int i = 0; oneof && i < oneof->field_count(); ++i) {
      const auto other = seen->find(oneof->field(i)->number());
      if (oneof->field(i) == field || other == seen->end()) continue;
      ReportValue(name, path,
                  fmt::format("only one kind can be given, and {} is set{}",
                              oneof->field(i)->name(), line(other->second)));
      return true;
    }
    return false;
  }

  // Parses what follows the name and colon: a value or, for repeated fields, also a list of values.
  void ParseValue(Message* message, const FieldDescriptor* field, const std::string& path,
                  const Token& name, int depth) {
    if (!layer_.locations.Find(path)) layer_.locations.Set(path, At(name));
    if (!field->is_repeated() || !Peek().Is('[')) {
      ParseElement(message, field, path, name, depth);
      return;
    }
    const Token& open = Take();
    if (TakeIf(']')) return;
    for (;;) {
      if (Peek().Is(']') || Peek().Is(',')) {
        ReportValue(Peek(), path, fmt::format("expected a value, found {}", Shown(Peek())));
      } else if (Peek().kind != TokenKind::kEnd) {
        ParseElement(message, field, path, Peek(), depth);
      }
      if (TakeIf(']')) return;
      if (TakeIf(',')) continue;
      if (Peek().kind == TokenKind::kEnd) {
        ReportValue(open, path, "this [ is never closed");
        return;
      }
      ReportValue(Peek(), path, fmt::format("expected \",\" or \"]\", found {}", Shown(Peek())));
      Recover();
      return;
    }
  }

  void ParseElement(Message* message, const FieldDescriptor* field, std::string path,
                    const Token& place, int depth) {
    const Reflection& reflection = *message->GetReflection();
    if (field->is_repeated()) {
      path = ElementPath(path, reflection.FieldSize(*message, field));
      layer_.locations.Set(path, At(place));
    }
    if (!field->message_type()) {
      ParseScalar(message, field, path);
      return;
    }
    if (!Peek().Is('{') && !Peek().Is('<')) {
      const bool is_dotted = IsDotted(Peek().text);
      ReportValue(Peek(), path,
                  fmt::format("expected {{ ... }}, found {}{}", Shown(Peek()),
                              is_dotted ? InBraces(field->name(), Peek().text) : ""));
      if (is_dotted) Take();
      if (is_dotted && Peek().kind == TokenKind::kBad) Take();  // "="
      SkipValue(/*is_value=*/true);
      return;
    }
    const Token& open = Peek();
    if (depth + 1 >= kMaxDepth) {
      ReportTooDeep(open);
      SkipBalanced();
      return;
    }
    Take();
    Message* inner = field->is_repeated() ? reflection.AddMessage(message, field)
                                          : reflection.MutableMessage(message, field);
    ParseFields(inner, path, &open, depth + 1);
  }

  void ParseScalar(Message* message, const FieldDescriptor* field, const std::string& path) {
    const Token& token = Peek();
    ScalarText text{token.kind, std::string(token.text)};
    std::string error;
    if (token.kind == TokenKind::kString) {
      text.text.clear();
      while (Peek().kind == TokenKind::kString) {
        const Token& part = Take();
        if (error.empty()) Unescape(part.text, &text.text, &error);
      }
    } else if (token.kind == TokenKind::kNumber || token.kind == TokenKind::kIdentifier) {
      // A name followed by a colon or brace is the next field: this one's value was forgotten.
      const Token& after = Peek(1);
      if (token.kind == TokenKind::kIdentifier &&
          (after.Is(':') || after.Is('{') || after.Is('<'))) {
        ReportValue(token, path, fmt::format("has no value before {}", Shown(token)));
        return;
      }
      Take();
    } else {
      ReportValue(token, path,
                  fmt::format("expected {}, found {}", ScalarKind(*field), Shown(token)));
      SkipValue();
      return;
    }
    if (error.empty()) error = SetScalar(message, field, text);
    if (!error.empty()) ReportValue(token, path, error);
  }

  // Past the value of a field that cannot be used, if there is one. `is_value`: its place has been
  // reached.
  void SkipValue(bool is_value = false) {
    is_value |= TakeIf(':');
    const Token& token = Peek();
    if (Opens(token)) {
      SkipBalanced();
    } else if (token.kind == TokenKind::kString) {
      while (Peek().kind == TokenKind::kString) Take();
    } else if (token.kind == TokenKind::kBad || token.kind == TokenKind::kNumber) {
      Take();
    } else if (token.kind == TokenKind::kIdentifier) {
      const Token& after = Peek(1);
      const bool is_field = after.Is(':') || after.Is('{') || after.Is('<');
      if (is_value && !is_field) Take();
    }
  }

  // Past a bracket and all that it encloses.
  void SkipBalanced() {
    const Token& first = Peek();
    int open = 0;
    do {
      const Token& token = Take();
      if (token.kind == TokenKind::kEnd) {
        Report(first, fmt::format("this {} is never closed", first.text));
        return;
      }
      if (Opens(token) && ++open == kMaxDepth) ReportTooDeep(token);
      open -= Closes(token);
    } while (open > 0);
  }

  void ReportTooDeep(const Token& token) {
    Report(token, fmt::format("nested deeper than {} levels", kMaxDepth));
  }

  // To where a field probably starts: a name on a later line, or what closes this message.
  void Recover() {
    const int line = Peek().line;
    while (Peek().kind != TokenKind::kEnd && !Peek().Is('}') && !Peek().Is('>')) {
      if (Peek().kind == TokenKind::kIdentifier && Peek().line > line) return;
      if (Opens(Peek())) {
        SkipBalanced();
      } else {
        Take();
      }
    }
  }

  const std::string source_;
  const bool lines_;
  Layer& layer_;
  Problems& problems_;
  const size_t before_;  // problems that are not of this text
  bool has_bad_tokens_ = false;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  size_t unknown_fields_ = 0;
};

}  // namespace

bool ParseLayer(const std::string& source, std::string_view text, Layer* layer,
                Problems* problems) {
  Problems found;
  Parser parser(source, text, true, layer, &found);
  parser.ParseAll();
  const bool says_nothing = layer->config.ByteSizeLong() == 0;
  if (says_nothing && found.list().size() > kMostOfConfiguration + parser.unknown_fields()) {
    const Problem& first = found.list().front();
    problems->Add({source}, NoConfigurationMessage(
                                source, fmt::format("{} errors; line {}: {}", found.list().size(),
                                                    first.where.line, first.message)));
    return false;
  }
  for (const Problem& problem : found.list()) problems->Add(problem.where, problem.message);
  return true;
}

std::string NoConfigurationMessage(const std::string& file, const std::string& why) {
  return fmt::format(
      "this is no configuration ({}); a text to learn from is named in one: data {{ train: \"{}\" "
      "}}",
      why, file);
}

void ParseOverrideText(const std::string& source, std::string_view text, Layer* layer,
                       Problems* problems) {
  Parser(source, text, false, layer, problems).ParseAll();
}

void ParseOverrideValue(const std::string& source, std::string_view text, Message* message,
                        const FieldDescriptor* field, const std::string& path, Layer* layer,
                        Problems* problems) {
  Parser(source, text, false, layer, problems).ParseOneValue(message, field, path);
}

}  // namespace syntra
