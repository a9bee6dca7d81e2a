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

constexpr double kWidth = 760, kLeft = 160, kRight = 740, kTop = 10;
constexpr double kRowHeight = 36, kRowDistance = 50, kLegendColumn = 120;

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
  svg->Text(kLeft - 8, y + kRowHeight / 2 + 4, "end", Fitting(run.name, kLeft - 8));
  svg->Line(kLeft, y + kRowHeight / 2, kRight, y + kRowHeight / 2, kGridStyle);
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
  const Scale x{Widened(steps), {kLeft, kRight}};
  const std::vector<std::string> kinds = KindsOf(runs);
  const double bottom = kTop + kRowDistance * static_cast<double>(runs.size());
  std::vector<std::string> names;
  for (const NamedEvents& run : runs) names.push_back(run.name);
  Svg svg(kWidth, bottom + Svg::kAxisHeight + LegendHeight(kinds.size(), kLegendColumn, kWidth),
          fmt::format("At which training steps there were {}: {}", Join(kinds, ", "),
                      Join(names, ", ")));
  svg.XAxis(x, kTop, bottom, "training steps");
  double y = kTop + (kRowDistance - kRowHeight) / 2;
  for (const NamedEvents& run : runs) {
    DrawRow(run, kinds, y, x, &svg);
    y += kRowDistance;
  }
  svg.Legend(kinds, kLegendColumn, bottom + Svg::kAxisHeight);
  return std::move(svg).Finish();
}

}  // namespace syntra
