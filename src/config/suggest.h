// SPDX-License-Identifier: Apache-2.0
// Suggests what was meant by an unknown field or enum value, first by meaning (the `synonym`s of
// the schema, names that belong elsewhere), then by spelling.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/options.pb.h"

namespace syntra {

// A field that does not exist, and where it was looked for.
struct UnknownField {
  const google::protobuf::Descriptor& message;
  std::string owner;      // path of the message; empty for the configuration itself
  std::string name;       // what `message` lacks
  std::string last = {};  // the last name of the path, if it goes on after `name`
};

// Other names for a field, and names that other programs have for settings that this field
// replaces.
std::vector<std::string> Synonyms(const google::protobuf::FieldDescriptor& field);
std::vector<Counterpart> Counterparts(const google::protobuf::FieldDescriptor& field);
// The names of a field's synonyms and counterparts.
std::vector<std::string> OtherNames(const google::protobuf::FieldDescriptor& field);

// Paths of the fields that were probably meant: several where one name stands for several.
std::vector<std::string> MeantFields(const UnknownField& unknown);

// `model has no field "d_modl"; did you mean "width"?`, with the whole path of a field elsewhere,
// and with the note of a counterpart: `"steps" (steps, not epochs)`. `meant`: what MeantFields
// gives; where that is nothing and the message is a choice of kinds, these are listed.
std::string UnknownFieldMessage(const UnknownField& unknown, std::vector<std::string> meant);

// `"ADAM" is not one of ADAFACTOR, ADAMW; did you mean "ADAMW"?`
std::string UnknownValueMessage(const google::protobuf::EnumDescriptor& type,
                                std::string_view name);

// Dotted paths of all fields that `name` is the name or a synonym of, without list indices.
std::vector<std::string> FieldsCalled(std::string_view name);

// As FieldsCalled, but of mixers only the usual one, and only the fields that lie least deep; or
// `name`, if it is the path of a field.
std::vector<std::string> FieldsMeant(std::string_view name);

// " (note)" where the field at `path` is only a counterpart of what other programs call `name`;
// else "".
std::string NoteOf(const std::string& path, std::string_view name);

// "model.mixer.attention.term[0].random" -> "model.mixer.attention.term.random".
std::string WithoutIndices(const std::string& path);

}  // namespace syntra
