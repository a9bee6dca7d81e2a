// SPDX-License-Identifier: Apache-2.0
// Parses protobuf text format by descriptors, reports every error instead of only the first, and
// records where each field is set. Accepts a subset of what protobuf's TextFormat accepts: no octal
// or hexadecimal numbers, no nan or inf, no overflow, no numbers for enums and bools, only UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "config/layer.h"

namespace syntra {

// Parses `text` into `layer`, whose config must be empty. Problems are placed in `source`. False,
// with one problem, if the text is anything but a configuration.
bool ParseLayer(const std::string& source, std::string_view text, Layer* layer, Problems* problems);

// The message for a file that was given as a configuration but is not one.
std::string NoConfigurationMessage(const std::string& file, const std::string& why);

// As ParseLayer for the text of one override; the place of everything in it is `source`, without a
// line.
void ParseOverrideText(const std::string& source, std::string_view text, Layer* layer,
                       Problems* problems);

// Parses `text` as the value of `field` of `message`, which lies at `path`; places and broken
// fields go to the layer.
void ParseOverrideValue(const std::string& source, std::string_view text,
                        google::protobuf::Message* message,
                        const google::protobuf::FieldDescriptor* field, const std::string& path,
                        Layer* layer, Problems* problems);

}  // namespace syntra
