// SPDX-License-Identifier: Apache-2.0
#include "cli/events_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "cli/svg.h"

namespace syntra {
namespace {

constexpr double kRowsEnd = 740, kRowHeight = 36, kRowDistance = 50;
constexpr double kKindColumn = 120;  // of the legend

// In the order in which they first come.
std::vector<std::string> KindsOf(std::span<const NamedEvents> runs) {
  std::vector<std::string> kinds;
  for (const NamedEvents& run : runs) {
    for (const RunEvent& event : run.events) {
      if (std::ranges::find(kinds, event.name) == kinds.end()) kinds.push_back(event.name);
    }
  }
  return kinds;
}

void DrawRow(const NamedEvents& run, std::span<const std::string> kinds, double y, const Scale& x,
             Svg* svg) {
  svg->Text(Svg::kNames - 8, y + kRowHeight / 2 + 4, "end", Fitting(run.name, Svg::kNames - 8));
  svg->Line(Svg::kNames, y + kRowHeight / 2, kRowsEnd, y + kRowHeight / 2, kGridStyle);
  // Each kind at its own height: a save and an evaluation often share their step.
  const double height = kRowHeight / static_cast<double>(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::set<int64_t> drawn;  // pixels: a run may have saved more often than there are
    for (const RunEvent& event : run.events) {
      const double place = x(static_cast<double>(event.step));
      if (event.name != kinds[i] || !drawn.insert(std::llround(place)).second) continue;
      svg->Box(place - 2, y + height * static_cast<double>(i), 4, height, ColorAt(i),
               fmt::format("{} at step {}", event.name, WithThousands(event.step)));
    }
  }
}

}  // namespace

std::string EventsSvg(std::span<const NamedEvents> runs) {
  PlotRange steps{0, 0};
  for (const NamedEvents& run : runs) {
    for (const RunEvent& event : run.events) {
      steps.high = std::max(steps.high, static_cast<double>(event.step));
    }
  }
  const Scale x{Widened(steps), {Svg::kNames, kRowsEnd}};
  const std::vector<std::string> kinds = KindsOf(runs);
  const double bottom = Svg::kTop + kRowDistance * static_cast<double>(runs.size());
  std::vector<std::string> names;
  for (const NamedEvents& run : runs) names.push_back(run.name);
  Svg svg(bottom + Svg::kAxisHeight + LegendHeight(kinds.size(), kKindColumn),
          fmt::format("At which training steps there were {}: {}", Join(kinds, ", "),
                      Join(names, ", ")));
  svg.XAxis(x, Svg::kTop, bottom, "training steps");
  double y = Svg::kTop + (kRowDistance - kRowHeight) / 2;
  for (const NamedEvents& run : runs) {
    DrawRow(run, kinds, y, x, &svg);
    y += kRowDistance;
  }
  svg.Legend(kinds, kKindColumn, bottom + Svg::kAxisHeight);
  return std::move(svg).Finish();
}

}  // namespace syntra
