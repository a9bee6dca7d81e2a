// SPDX-License-Identifier: Apache-2.0
// Messages without what they would say anyway.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/util/message_differencer.h>

#include <memory>

namespace syntra {

// Removes fields that hold their default and messages that then say nothing. The member of a oneof
// stays if it is a message: that it is set is what it says.
inline void RemoveDefaults(google::protobuf::Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  const std::unique_ptr<google::protobuf::Message> unset(message->New());
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const auto* field = message->GetDescriptor()->field(i);
    if (field->is_repeated()) {
      for (int k = 0; field->message_type() && k < reflection.FieldSize(*message, field); ++k) {
        RemoveDefaults(reflection.MutableRepeatedMessage(message, field, k));
      }
    } else if (!reflection.HasField(*message, field)) {
      continue;
    } else if (field->message_type()) {
      google::protobuf::Message* inner = reflection.MutableMessage(message, field);
      RemoveDefaults(inner);
      if (inner->ByteSizeLong() == 0 && !field->containing_oneof()) {
        reflection.ClearField(message, field);
      }
    } else if (google::protobuf::util::MessageDifferencer().CompareWithFields(*message, *unset,
                                                                              {field}, {field})) {
      reflection.ClearField(message, field);
    }
  }
}

}  // namespace syntra
