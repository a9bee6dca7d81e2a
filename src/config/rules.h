// SPDX-License-Identifier: Apache-2.0
// Checks of single fields: the `rule` options of the schema.
#pragma once

#include <google/protobuf/message.h>

#include "config/config.h"
#include "config/layer.h"

namespace syntra {

// Adds a problem with the field at `path`, unless the field counts as broken already. The problem's
// place is where the field is set, or else where the message around it is, or else `fallback`.
void AddFieldProblem(const Layer& layer, const Location& fallback, const std::string& path,
                     const std::string& message, Problems* problems);

// Reports each set field that breaks its rule, and each field that `purpose` needs and that is
// missing; they count as broken from then on.
void CheckRules(Layer* layer, const Location& fallback, const ConfigPurpose& purpose,
                Problems* problems);

// "greater than 0, at most 0.9", "required"; "" if the field has no rule.
std::string RuleText(const google::protobuf::FieldDescriptor& field);

}  // namespace syntra
