// Suggestions for misspelt fields and enum values.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace syntra {

// The field of `message` that was probably meant by `name`, or "".
std::string NearestField(const google::protobuf::Descriptor& message, std::string_view name);

// `ModelConfig has no field "witdh"; did you mean "width"?`, or where a field of that name exists.
std::string UnknownFieldMessage(const google::protobuf::Descriptor& message,
                                const std::string& path, std::string_view name);

// `"ADAM" is not one of ADAFACTOR, ADAMW; did you mean "ADAMW"?`
std::string UnknownValueMessage(const google::protobuf::EnumDescriptor& type,
                                std::string_view name);

// Dotted paths of all fields called `name` in the configuration, without list indices.
std::vector<std::string> PathsOfField(std::string_view name);

}  // namespace syntra
