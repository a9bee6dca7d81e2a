// SPDX-License-Identifier: Apache-2.0
// Which of several kinds a message is.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace syntra {

// The name of the field that is set in a oneof of `message`, "dot_product"; "" if none is set.
inline std::string KindOf(const google::protobuf::Message& message,
                          const std::string& oneof = "kind") {
  const auto* choice = message.GetDescriptor()->FindOneofByName(oneof);
  const auto* field = message.GetReflection()->GetOneofFieldDescriptor(message, choice);
  return field ? field->name() : "";
}

// Whether to set the message is to choose one of several kinds of it, each a message of its own: as
// of a mixer or a task.
inline bool IsChoice(const google::protobuf::Descriptor& message) {
  for (int i = 0; i < message.oneof_decl_count(); ++i) {
    const auto& oneof = *message.oneof_decl(i);
    bool kinds = oneof.field_count() > 1;
    for (int k = 0; k < oneof.field_count(); ++k)
      kinds &= oneof.field(k)->message_type() != nullptr;
    if (kinds) return true;
  }
  return false;
}

}  // namespace syntra
