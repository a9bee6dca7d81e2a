// SPDX-License-Identifier: Apache-2.0
// A picture (SVG) of the parts of several wholes: a bar for each whole, divided into its parts.
#pragma once

#include <span>
#include <string>

#include "base/named_value.h"

namespace syntra {

struct NamedBar {
  std::string name;
  NamedValues parts;  // none below 0; the same names in every bar
};

// One picture of all bars, one below the other on a common axis that begins at 0, with each bar's
// sum at its end and a legend of the parts. `unit` stands at the axis.
std::string BarsSvg(std::span<const NamedBar> bars, const std::string& unit);

}  // namespace syntra
