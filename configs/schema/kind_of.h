// SPDX-License-Identifier: Apache-2.0
// Which of several kinds a message is, and all kinds that the schema has.
#pragma once

#include <google/protobuf/generated_enum_reflection.h>
#include <google/protobuf/message.h>

#include <set>
#include <string>
#include <vector>

namespace syntra {

// The name of the field that is set in a oneof of `message`, "dot_product"; "" if none is set.
inline std::string KindOf(const google::protobuf::Message& message,
                          const std::string& oneof = "kind") {
  const auto* choice = message.GetDescriptor()->FindOneofByName(oneof);
  const auto* field = message.GetReflection()->GetOneofFieldDescriptor(message, choice);
  return field ? field->name() : "";
}

// The names of the fields of a oneof of Message.
template <typename Message>
std::set<std::string> KindNames(const std::string& oneof = "kind") {
  const auto* choice = Message::descriptor()->FindOneofByName(oneof);
  std::set<std::string> names;
  for (int i = 0; i < choice->field_count(); ++i) names.insert(choice->field(i)->name());
  return names;
}

// The values of an enum.
template <typename Enum>
std::vector<Enum> EnumValues() {
  const auto* type = google::protobuf::GetEnumDescriptor<Enum>();
  std::vector<Enum> values;
  for (int i = 0; i < type->value_count(); ++i) {
    values.push_back(static_cast<Enum>(type->value(i)->number()));
  }
  return values;
}

}  // namespace syntra
