// SPDX-License-Identifier: Apache-2.0
// Decides what happens if a run continues from a checkpoint with a different configuration, by the
// `change` options of the schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

// Returns what a continued run does with a change of the field at `path`, such as "optimizer.beta1"
// or "data.train[0]". That is the field's own option; without one, that of the innermost message
// around it that has one; else REFUSED.
Change ChangeOf(std::string_view path);

// "path: before -> now" for each field that differs, grouped by what a continued run does with it.
struct ConfigChanges {
  std::vector<std::string> refused, scheduled, judging, free;
};
ConfigChanges ChangesBetween(const Config& before, const Config& now);

}  // namespace syntra
