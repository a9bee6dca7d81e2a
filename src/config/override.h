// SPDX-License-Identifier: Apache-2.0
// Parses the text after --set.
#pragma once

#include <string>

#include "config/layer.h"

namespace syntra {

// Parses `a.b=value`, `list[0].b=value` or message text such as `a { b: value }` into `layer`,
// whose config must be empty. `lower` is the layer below; it holds the elements that an index
// refers to.
void ParseOverride(const std::string& assignment, const Layer& lower, Layer* layer,
                   Problems* problems);

}  // namespace syntra
