// SPDX-License-Identifier: Apache-2.0
// What a run that continues from a checkpoint does with a configuration that differs: the `change`
// options of the schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

// What a run that continues does with a change of the field at `path`, such as "optimizer.beta1" or
// "data.train[0]": the field's own option, or that of the innermost message around it that has one,
// or REFUSED.
Change ChangeOf(std::string_view path);

// "path: before -> now" for each field that differs, by what a run that continues does with it.
struct ConfigChanges {
  std::vector<std::string> refused, scheduled, free;
};
ConfigChanges ChangesBetween(const Config& before, const Config& now);

}  // namespace syntra
