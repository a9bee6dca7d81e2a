// SPDX-License-Identifier: Apache-2.0
#include "config/print.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <map>

#include "base/digest.h"
#include "base/error.h"
#include "config/layer.h"
#include "config/scalar.h"
#include "configs/schema/defaults.h"
#include "configs/schema/kind_of.h"
#include "model/architecture.h"

namespace syntra {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string ToText(const Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  SYNTRA_CHECK(printer.PrintToString(message, &text));
  return text;
}

template <typename Visit>
void ForEachField(const Message& message, Visit visit) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    visit(message.GetDescriptor()->field(i));
  }
}

void SetToDefault(Message* message, const FieldDescriptor* field) {
  const Reflection& reflection = *message->GetReflection();
  const std::string text = ScalarToText(*message, field);
  const TokenKind kind = field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM ||
                                 field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL
                             ? TokenKind::kIdentifier
                             : TokenKind::kNumber;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection.SetString(message, field, field->default_value_string());
  } else {
    const std::string error = SetScalar(message, field, {kind, text});
    SYNTRA_CHECK(error.empty(), "default of {}: {}", field->full_name(), error);
  }
}

// Whether another way to say the same is set.
bool IsReplaced(const Message& message, const FieldDescriptor* field) {
  const auto* oneof = field->containing_oneof();
  const auto* set =
      oneof ? message.GetReflection()->GetOneofFieldDescriptor(message, oneof) : nullptr;
  return set && set != field;
}

// Sets every field to the value that it has anyway. Messages with a choice of kinds stay unset:
// setting one would be a choice.
void FillDefaults(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  ForEachField(*message, [&](const FieldDescriptor* field) {
    if (field->is_repeated()) {
      for (int k = 0; field->message_type() && k < reflection.FieldSize(*message, field); ++k) {
        FillDefaults(reflection.MutableRepeatedMessage(message, field, k));
      }
    } else if (field->message_type()) {
      const bool is_choice = field->containing_oneof() || IsChoice(*field->message_type());
      if (reflection.HasField(*message, field) || !is_choice) {
        FillDefaults(reflection.MutableMessage(message, field));
      }
    } else if (!reflection.HasField(*message, field) && !IsReplaced(*message, field)) {
      SetToDefault(message, field);
    }
  });
}

// With every field that means something in its architecture. A mixer that names no kind is
// attention.
Config Filled(const Config& config) {
  Config full = config;
  MutableAttention(full.mutable_model()->mutable_mixer());
  FillDefaults(&full);
  ClearForeignFields(full.mutable_model());
  // The rates that it stands for are there.
  full.mutable_model()->clear_attention_dropout();
  return full;
}

// The values of all leaves by path, in schema order.
using Values = std::vector<std::pair<std::string, std::string>>;

void Flatten(const Message& message, const std::string& path, Values* values) {
  const Reflection& reflection = *message.GetReflection();
  if (message.GetDescriptor()->field_count() == 0) values->emplace_back(path, "{}");
  ForEachField(message, [&](const FieldDescriptor* field) {
    const std::string field_path = FieldPath(path, field->name());
    const bool repeated = field->is_repeated();
    const int count =
        repeated ? reflection.FieldSize(message, field) : reflection.HasField(message, field);
    for (int k = 0; k < count; ++k) {
      const std::string place = repeated ? ElementPath(field_path, k) : field_path;
      if (!field->message_type()) {
        values->emplace_back(place, ScalarToText(message, field, repeated ? k : -1));
      } else {
        Flatten(repeated ? reflection.GetRepeatedMessage(message, field, k)
                         : reflection.GetMessage(message, field),
                place, values);
      }
    }
  });
}

}  // namespace

std::string MinimalConfigText(const Config& config) {
  Config minimal = config;
  RemoveDefaults(&minimal);
  // The mixer of a model that names none.
  if (minimal.model().mixer().has_attention() &&
      minimal.model().mixer().attention().ByteSizeLong() == 0) {
    minimal.mutable_model()->clear_mixer();
    RemoveDefaults(&minimal);
  }
  return ToText(minimal);
}

std::string FullConfigText(const Config& config) { return ToText(Filled(config)); }

std::vector<std::pair<std::string, std::string>> ConfigValues(const Config& config) {
  Values values;
  Flatten(Filled(config), "", &values);
  return values;
}

std::vector<std::string> ConfigDifferences(const Config& a, const Config& b) {
  const Values values[2] = {ConfigValues(a), ConfigValues(b)};
  std::map<std::string, std::string> by_path[2];
  for (int side = 0; side < 2; ++side) {
    by_path[side].insert(values[side].begin(), values[side].end());
  }
  std::vector<std::string> differences;
  for (const auto& [path, value] : values[0]) {
    const auto other = by_path[1].find(path);
    const std::string there = other == by_path[1].end() ? "(none)" : other->second;
    if (value != there) differences.push_back(fmt::format("{}: {} -> {}", path, value, there));
  }
  for (const auto& [path, value] : values[1]) {
    if (!by_path[0].contains(path)) {
      differences.push_back(fmt::format("{}: (none) -> {}", path, value));
    }
  }
  return differences;
}

std::string ConfigDigest(const Config& config) {
  return ToHex(DigestOf(std::string_view(MinimalConfigText(config))));
}

}  // namespace syntra
