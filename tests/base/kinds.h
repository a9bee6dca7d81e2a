// SPDX-License-Identifier: Apache-2.0
// All kinds that the schema has: for tests that must have a case of each.
#pragma once

#include <google/protobuf/generated_enum_reflection.h>
#include <google/protobuf/message.h>

#include <set>
#include <string>
#include <vector>

namespace syntra {

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
