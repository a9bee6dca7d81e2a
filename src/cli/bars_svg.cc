// SPDX-License-Identifier: Apache-2.0
#include "cli/bars_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "cli/svg.h"

namespace syntra {
namespace {

constexpr double kBarsEnd = 680, kBarHeight = 24, kBarDistance = 36;
constexpr double kPartColumn = 180;  // of the legend

double SumOf(const NamedBar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0,
                         [](double sum, const NamedValue& part) { return sum + part.value; });
}

std::string Number(double value) { return fmt::format("{:.4g}", value); }

void DrawBar(const NamedBar& bar, double y, const Scale& x, const std::string& unit, Svg* svg) {
  svg->Text(Svg::kNames - 8, y + 0.7 * kBarHeight, "end", Fitting(bar.name, Svg::kNames - 8));
  double begin = 0;
  for (size_t i = 0; i < bar.parts.size(); ++i) {
    const double end = begin + bar.parts[i].value;
    svg->Box(x(begin), y, x(end) - x(begin), kBarHeight, ColorAt(i),
             fmt::format("{}: {} {}", bar.parts[i].name, Number(bar.parts[i].value), unit));
    begin = end;
  }
  svg->Text(x(begin) + 6, y + 0.7 * kBarHeight, "start", Number(begin));
}

}  // namespace

std::string BarsSvg(std::span<const NamedBar> bars, const std::string& unit) {
  double most = 0;
  for (const NamedBar& bar : bars) most = std::max(most, SumOf(bar));
  const Scale x{Widened({0, most}), {Svg::kNames, kBarsEnd}};
  std::vector<std::string> legend, sums;
  for (const NamedValue& part : bars.front().parts) legend.push_back(part.name);
  for (const NamedBar& bar : bars) sums.push_back(bar.name + " " + Number(SumOf(bar)));
  const double bottom = Svg::kTop + kBarDistance * static_cast<double>(bars.size());
  Svg svg(bottom + Svg::kAxisHeight + LegendHeight(legend.size(), kPartColumn),
          fmt::format("{}, cut into {}: {}", unit, Join(legend, ", "), Join(sums, ", ")));
  svg.XAxis(x, Svg::kTop, bottom, unit);
  double y = Svg::kTop + (kBarDistance - kBarHeight) / 2;
  for (const NamedBar& bar : bars) {
    DrawBar(bar, y, x, unit, &svg);
    y += kBarDistance;
  }
  svg.Legend(legend, kPartColumn, bottom + Svg::kAxisHeight);
  return std::move(svg).Finish();
}

}  // namespace syntra
