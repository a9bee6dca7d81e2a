// SPDX-License-Identifier: Apache-2.0
// Matrices of numbers as a picture (SVG) of shades.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syntra {

struct HeatMap {
  std::string name;
  int64_t rows = 0, columns = 0;
  std::vector<float> values;  // row-major, none below 0
};

struct HeatMapGroup {
  std::string name;
  std::vector<HeatMap> maps;
};

// One picture of all groups, one below the other, their maps side by side. The darkest shade of a
// map is its largest value, which stands beside its name. `label` says in words what rows and
// columns are.
std::string HeatMapsSvg(std::span<const HeatMapGroup> groups, const std::string& label);

}  // namespace syntra
