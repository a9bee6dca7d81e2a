// SPDX-License-Identifier: Apache-2.0
// Numbers with names: what a step or an evaluation gave.
#pragma once

#include <string>
#include <vector>

namespace syntra {

struct NamedValue {
  std::string name;
  double value = 0;
};
using NamedValues = std::vector<NamedValue>;

}  // namespace syntra
