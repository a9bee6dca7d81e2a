// SPDX-License-Identifier: Apache-2.0
// Curves of several runs as a picture (SVG), for pages and papers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/plot.h"
#include "cli/svg.h"

namespace syntra {

struct NamedCurve {
  std::string name;
  std::vector<PlotPoint> points;  // by ascending x; those that are not finite are left out, and of
                                  // very many the means of neighbours are drawn
};

// One picture of all curves on common axes, with a legend that gives each curve's last value.
// `x_name` and `y_name` stand at the axes.
std::string CurvesSvg(std::span<const NamedCurve> curves, const std::string& x_name,
                      const std::string& y_name, AxisKind x_kind = AxisKind::kLinear);

}  // namespace syntra
