// SPDX-License-Identifier: Apache-2.0
// Checks of several fields together.
#pragma once

#include "config/layer.h"

namespace syntra {

// Reports settings that are fine one by one but not together; each message says what to change.
// Checks that read a field with an error of its own are left out.
void CheckCombinations(const Layer& layer, const Location& fallback, Problems* problems);

}  // namespace syntra
