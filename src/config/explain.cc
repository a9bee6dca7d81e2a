#include "config/explain.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.pb.h>

#include <regex>

#include "base/error.h"
#include "base/text.h"
#include "config/layer.h"
#include "config/rules.h"
#include "config/scalar.h"
#include "config/schema_descriptors.h"
#include "config/suggest.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// The schema with source positions; the compiled-in descriptors have none.
class Comments {
 public:
  Comments() {
    google::protobuf::FileDescriptorSet files;
    SYNTRA_CHECK(
        files.ParseFromArray(kSchemaDescriptors, static_cast<int>(kSchemaDescriptorsSize)));
    for (const auto& file : files.file()) SYNTRA_CHECK(pool_.BuildFile(file));
  }

  std::string Of(const FieldDescriptor& field) const {
    return Text(*pool_.FindFieldByName(field.full_name()));
  }
  std::string Of(const Descriptor& message) const {
    return Text(*pool_.FindMessageTypeByName(message.full_name()));
  }
  std::string Of(const google::protobuf::EnumValueDescriptor& value) const {
    return Text(
        *pool_.FindEnumTypeByName(value.type()->full_name())->FindValueByName(value.name()));
  }

 private:
  // The comment above and the one behind, as one paragraph.
  template <typename Descriptor>
  static std::string Text(const Descriptor& descriptor) {
    google::protobuf::SourceLocation location;
    if (!descriptor.GetSourceLocation(&location)) return "";
    std::vector<std::string> lines;
    for (const std::string& comment : {location.leading_comments, location.trailing_comments}) {
      for (const std::string& line : Split(comment, '\n')) {
        if (!StripSpace(line).empty()) lines.emplace_back(StripSpace(line));
      }
    }
    return Join(lines, " ");
  }

  DescriptorPool pool_;
};

std::string TypeText(const FieldDescriptor& field) {
  std::string type = field.message_type() ? "message " + field.message_type()->name()
                     : field.enum_type()  ? "enum " + field.enum_type()->name()
                                          : field.type_name();
  return field.is_repeated() ? "list of " + type : type;
}

std::string DefaultText(const FieldDescriptor& field) {
  if (field.is_repeated() || field.message_type()) return "";
  const auto* factory = google::protobuf::MessageFactory::generated_factory();
  const auto* owner =
      const_cast<google::protobuf::MessageFactory*>(factory)->GetPrototype(field.containing_type());
  return ScalarToText(*owner, &field);
}

std::string ValueLines(const Comments& comments, const EnumDescriptor& type) {
  std::string text;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string comment = comments.Of(*type.value(i));
    text +=
        fmt::format("    {}{}{}\n", type.value(i)->name(), comment.empty() ? "" : "  ", comment);
  }
  return "  values\n" + text;
}

std::string FieldLines(const Comments& comments, const Descriptor& message) {
  std::string text;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string value = DefaultText(field);
    std::string comment = comments.Of(field);
    if (comment.empty() && field.message_type()) comment = comments.Of(*field.message_type());
    text += fmt::format("    {}  {}{}{}{}\n", field.name(), TypeText(field),
                        value.empty() ? "" : ", default " + value, comment.empty() ? "" : ". ",
                        comment);
  }
  const bool is_choice = message.oneof_decl_count() > 0;
  return text.empty() ? "" : (is_choice ? "  one of\n" : "  fields\n") + text;
}

std::string Explanation(const Comments& comments, const std::string& path,
                        const FieldDescriptor& field) {
  std::string text = path + "\n";
  text += fmt::format("  type     {}\n", TypeText(field));
  const std::string value = DefaultText(field), rule = RuleText(field);
  if (!value.empty()) text += fmt::format("  default  {}\n", value);
  if (!rule.empty()) text += fmt::format("  rule     {}\n", rule);
  if (const std::string comment = comments.Of(field); !comment.empty()) {
    text += fmt::format("  {}\n", comment);
  }
  if (field.enum_type()) text += ValueLines(comments, *field.enum_type());
  if (field.message_type()) {
    const std::string comment = comments.Of(*field.message_type());
    if (!comment.empty()) text += fmt::format("  {}\n", comment);
    text += FieldLines(comments, *field.message_type());
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
    if (!field) Fail(ExitCode::kConfig, "{}", UnknownFieldMessage(*message, owner, name));
    owner = FieldPath(owner, name);
    message = field->message_type();
  }
  return *field;
}

void CollectSettable(const Descriptor& message, const std::string& path,
                     std::vector<std::string>* paths) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string field_path = FieldPath(path, field.name());
    if (field.message_type() && !field.is_repeated()) {
      CollectSettable(*field.message_type(), field_path, paths);
    } else {
      paths->push_back(field_path);
    }
  }
}

}  // namespace

std::vector<std::string> SettableFields() {
  std::vector<std::string> paths;
  CollectSettable(*Config::descriptor(), "", &paths);
  return paths;
}

std::string ExplainField(const std::string& place) {
  const Comments comments;
  const std::string path = std::regex_replace(place, std::regex("\\[[0-9]*\\]"), "");
  std::vector<std::string> paths = {path};
  if (!Config::descriptor()->FindFieldByName(path)) {
    if (const auto named = PathsOfField(path); !named.empty()) paths = named;
  }
  std::string text;
  for (const std::string& each : paths) {
    if (!text.empty()) text += "\n";
    text += Explanation(comments, each, FindField(each));
  }
  return text;
}

}  // namespace syntra
