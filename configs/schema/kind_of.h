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

}  // namespace syntra
