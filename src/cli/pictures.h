// SPDX-License-Identifier: Apache-2.0
// Pictures (SVG) for pages and papers: curves of several runs, the parts of several wholes, the
// events of runs, and matrices of numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/named_value.h"
#include "base/plot.h"
#include "cli/svg.h"
#include "run/event_log.h"

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

struct NamedBar {
  std::string name;
  NamedValues parts;  // none below 0; the same names in every bar
};

// One picture of all bars, one below the other on a common axis that begins at 0, with each bar's
// sum at its end and a legend of the parts. `unit` stands at the axis.
std::string BarsSvg(std::span<const NamedBar> bars, const std::string& unit);

struct NamedEvents {
  std::string name;
  std::vector<RunEvent> events;
};

// One picture of all runs: a row for each, on a common axis of steps, with a mark of the event's
// colour wherever something happened, and a legend.
std::string EventsSvg(std::span<const NamedEvents> runs);

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
