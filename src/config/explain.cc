// SPDX-License-Identifier: Apache-2.0
#include "config/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/field_report.h"
#include "base/text.h"
#include "config/change.h"
#include "config/comments.h"
#include "config/rules.h"
#include "config/scalar.h"
#include "config/suggest.h"
#include "configs/schema/config.pb.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kColumns = 80;
// Where the sentences of a list of fields begin.
constexpr size_t kSentenceColumn = 38;

// `text` in lines of at most kColumns that begin at column `indent`, the first without its indent.
std::string Wrapped(const std::string& text, size_t indent) {
  return Join(WrapText(text, kColumns - indent), "\n" + std::string(indent, ' ')) + "\n";
}

std::string Paragraph(const std::string& text, size_t indent) {
  return text.empty() ? "" : std::string(indent, ' ') + Wrapped(text, indent);
}

// `left`, then the text from `column` on; on the next line where `left` is too long.
std::string InColumns(const std::string& left, const std::string& text, size_t column) {
  if (text.empty()) return left + "\n";
  if (left.size() + 2 > column) return left + "\n" + Paragraph(text, column);
  return left + std::string(column - left.size(), ' ') + Wrapped(text, column);
}

// Up to a full stop that a word ends with and a capital letter follows: "q_i . k_j" goes on.
std::string FirstSentence(const std::string& text) {
  for (size_t i = 1; i + 2 < text.size(); ++i) {
    if (text[i] == '.' && text[i - 1] != ' ' && text[i + 1] == ' ' && std::isupper(text[i + 2])) {
      return text.substr(0, i + 1);
    }
  }
  return text;
}

std::string TypeText(const FieldDescriptor& field) {
  std::string type = field.message_type() ? "message " + field.message_type()->name()
                     : field.enum_type()  ? "enum " + field.enum_type()->name()
                                          : field.type_name();
  return field.is_repeated() ? "list of " + type : type;
}

std::string DefaultText(const FieldDescriptor& field) {
  if (field.is_repeated() || field.message_type()) return "";
  auto* factory = google::protobuf::MessageFactory::generated_factory();
  return ScalarToText(*factory->GetPrototype(field.containing_type()), &field);
}

std::string ValueLines(const SchemaComments& comments, const EnumDescriptor& type) {
  size_t column = 0;
  for (int i = 0; i < type.value_count(); ++i) {
    column = std::max(column, type.value(i)->name().size() + 6);
  }
  std::string text = "  values\n";
  for (int i = 0; i < type.value_count(); ++i) {
    text += InColumns("    " + type.value(i)->name(), comments.Of(*type.value(i)), column);
  }
  return text;
}

// The purpose of a field; if it chooses one kind among several, also the description of that kind.
std::string SentencesOf(const SchemaComments& comments, const FieldDescriptor& field) {
  const std::string own = FirstSentence(comments.Of(field));
  if (!field.containing_oneof() || !field.message_type()) return own;
  const std::string of_message = FirstSentence(comments.Of(*field.message_type()));
  return of_message.empty() ? own : own + " " + of_message;
}

// Lists all fields below a message, a line each that wraps.
class FieldTree {
 public:
  explicit FieldTree(const SchemaComments& comments) : comments_(comments) {}

  // Lines of `message`, which lies at `path`.
  void Add(const Descriptor& message, const std::string& path, size_t indent) {
    if (message.field_count() == 0) return;
    shown_.emplace(&message, path);
    for (int i = 0; i < message.field_count(); ++i) AddField(*message.field(i), path, indent);
  }

  // As Add, under headings: the fields of which only one can be set come last.
  void AddWhole(const Descriptor& message, const std::string& path, size_t indent) {
    shown_.emplace(&message, path);
    AddPart("  fields\n", message, path, indent,
            [](const auto& f) { return !f.containing_oneof(); });
    AddPart("  one of\n", message, path, indent,
            [](const auto& f) { return f.containing_oneof(); });
  }

  const std::string& text() const { return text_; }

 private:
  void AddPart(const char* heading, const Descriptor& message, const std::string& path,
               size_t indent, const auto& belongs) {
    const size_t before = text_.size();
    for (int i = 0; i < message.field_count(); ++i) {
      if (belongs(*message.field(i))) AddField(*message.field(i), path, indent);
    }
    if (text_.size() > before) text_.insert(before, heading);
  }

  void AddField(const FieldDescriptor& field, const std::string& path, size_t indent) {
    const Descriptor* message = field.message_type();
    std::string sentence = SentencesOf(comments_, field);
    const auto shown = shown_.find(message);
    const bool again = message && shown != shown_.end();
    if (again) sentence += fmt::format(" Fields as in {}.", shown->second);
    text_ +=
        InColumns(std::string(indent, ' ') + field.name() + Kind(field), sentence, kSentenceColumn);
    if (message && !again) Add(*message, FieldPath(path, field.name()), indent + 2);
  }

  static std::string Kind(const FieldDescriptor& field) {
    if (field.message_type()) return field.is_repeated() ? "  list" : "";
    const std::string value = DefaultText(field);
    const bool says_nothing = value.empty() || value == "\"\"";
    return fmt::format("  {}{}", field.enum_type() ? field.enum_type()->name() : TypeText(field),
                       says_nothing ? "" : " = " + value);
  }

  const SchemaComments& comments_;
  std::map<const Descriptor*, std::string> shown_;  // where
  std::string text_;
};

// Says what a continued run does with another value; "" for a message, whose fields may differ.
std::string ChangeText(const SchemaComments& comments, const std::string& path,
                       const FieldDescriptor& field) {
  if (field.message_type()) return "";
  const Change change = ChangeOf(path);
  return comments.Of(*Change_descriptor()->FindValueByNumber(change));
}

// "  Also known as: lr, learning_rate"; nothing without `text`.
std::string Labelled(const std::string& label, const std::string& text) {
  return text.empty() ? "" : Paragraph(label + ": " + text, 2);
}

std::string FieldLines(const SchemaComments& comments, const std::string& path,
                       const Descriptor& message) {
  FieldTree tree(comments);
  tree.AddWhole(message, path, 4);
  return tree.text();
}

std::string Explanation(const SchemaComments& comments, const std::string& path,
                        const FieldDescriptor& field) {
  std::string text = path + "\n";
  text += fmt::format("  type     {}\n", TypeText(field));
  const std::string value = DefaultText(field), rule = RuleText(field);
  if (!value.empty()) text += fmt::format("  default  {}\n", value);
  if (!rule.empty()) text += fmt::format("  rule     {}\n", rule);
  text += Paragraph(comments.Of(field), 2);
  text += Labelled("Also known as", Join(Synonyms(field), ", "));
  for (const Counterpart& each : Counterparts(field)) {
    const std::vector<std::string> names(each.name().begin(), each.name().end());
    text += Labelled("Instead of " + Join(names, ", "), each.note());
  }
  text += Labelled("Changing it when a run continues", ChangeText(comments, path, field));
  if (field.enum_type()) text += ValueLines(comments, *field.enum_type());
  if (field.message_type()) {
    text += Paragraph(comments.Of(*field.message_type()), 2);
    text += FieldLines(comments, path, *field.message_type());
  }
  return text;
}

// The field at `path`; fails with a suggestion if a part of it does not exist.
const FieldDescriptor& FindField(const std::string& path) {
  const Descriptor* message = Config::descriptor();
  const FieldDescriptor* field = nullptr;
  std::string owner;
  for (const std::string& name : Split(path, '.')) {
    if (!message) Fail(ExitCode::kConfig, "{} has no fields", owner);
    field = message->FindFieldByName(name);
    if (!field) {
      const UnknownField unknown{*message, owner, name};
      Fail(ExitCode::kConfig, "{}", UnknownFieldMessage(unknown, MeantFields(unknown)));
    }
    owner = FieldPath(owner, name);
    message = field->message_type();
  }
  return *field;
}

// The words that the field takes, where they can be listed.
std::vector<std::string> ValuesOf(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return {"true", "false"};
  std::vector<std::string> values;
  for (int i = 0; field.enum_type() && i < field.enum_type()->value_count(); ++i) {
    values.push_back(field.enum_type()->value(i)->name());
  }
  return values;
}

void Collect(const Descriptor& message, const std::string& path, std::vector<FieldPlace>* places) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string field_path = FieldPath(path, field.name());
    const bool enters = field.message_type() && !field.is_repeated();
    places->push_back({field_path, !enters, ValuesOf(field)});
    if (enters) Collect(*field.message_type(), field_path, places);
  }
}

}  // namespace

std::vector<FieldPlace> AllFields() {
  std::vector<FieldPlace> places;
  Collect(*Config::descriptor(), "", &places);
  return places;
}

std::string ExplainField(const std::string& place) {
  const SchemaComments comments;
  const std::string path = WithoutIndices(place);
  std::vector<std::string> paths = {path};
  if (!Config::descriptor()->FindFieldByName(path)) {
    if (const auto named = FieldsCalled(path); !named.empty()) paths = named;
  }
  constexpr size_t kMostExplained = 4;
  std::string text, others;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (i >= kMostExplained) {
      others += "  " + paths[i] + "\n";
      continue;
    }
    if (i > 0) text += "\n";
    text += Explanation(comments, paths[i], FindField(paths[i]));
  }
  return others.empty() ? text : text + "\nThe same name, too:\n" + others;
}

std::string ExplainAll() {
  const SchemaComments comments;
  FieldTree tree(comments);
  tree.Add(*Config::descriptor(), "", 0);
  return tree.text();
}

}  // namespace syntra
