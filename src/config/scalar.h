// SPDX-License-Identifier: Apache-2.0
// Sets one field of a message from one token of text, strictly.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "config/token.h"

namespace syntra {

struct ScalarText {
  TokenKind kind;    // kNumber, kIdentifier or kString
  std::string text;  // strings without quotes and escapes
};

// "an integer", "a number", "true or false", "a string in quotes", "one of A, B".
std::string ScalarKind(const google::protobuf::FieldDescriptor& field);

// Sets the field, or appends to it if it is repeated. Returns what is wrong with the text, or "".
std::string SetScalar(google::protobuf::Message* message,
                      const google::protobuf::FieldDescriptor* field, const ScalarText& text);

// A default or current value as text: 512, 1e-06, RELU, true, "text".
std::string ScalarToText(const google::protobuf::Message& message,
                         const google::protobuf::FieldDescriptor* field, int index = -1);

}  // namespace syntra
