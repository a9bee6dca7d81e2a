// SPDX-License-Identifier: Apache-2.0
#include "cli/curves_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace syntra {
namespace {

constexpr double kHeight = 420;
constexpr double kLeft = 76, kRight = 540, kTop = 20, kBottom = 370;  // of the axes
constexpr double kLegendText = kRight + 42;
constexpr size_t kMostPoints = 480;  // of a curve: more than there are pixels would be a band

// Log-perplexities with two digits; numbers of other sizes with three that count.
std::string ValueText(double value) {
  if (std::abs(value) >= 1000) return HumanCount(value);
  return fmt::format(fmt::runtime(std::abs(value) >= 0.1 ? "{:.2f}" : "{:.3g}"), value);
}

// The curve and its line of the legend, with its last value.
void DrawCurve(const NamedCurve& curve, size_t index, const Scale& x, const Scale& y, Svg* svg) {
  const std::string style = LineStyleAt(index);
  std::vector<PlotPoint> places;
  double last = NAN;
  for (const PlotPoint& point : curve.points) {
    if (!std::isfinite(point.y)) continue;
    places.push_back({x(point.x), y(point.y)});
    last = point.y;
  }
  svg->Polyline(places, style);
  const double height = kTop + 14 + Svg::kLegendLine * static_cast<double>(index);
  svg->Line(kRight + 14, height - 4, kRight + 36, height - 4, style);
  const std::string value = "  " + ValueText(last);
  svg->Text(kLegendText, height, "start",
            Fitting(curve.name, Svg::kWidth - kLegendText - WidthOf(value)) + value);
}

}  // namespace

std::string CurvesSvg(std::span<const NamedCurve> curves, const std::string& x_name,
                      const std::string& y_name, AxisKind x_kind) {
  std::vector<NamedCurve> drawn;
  std::vector<std::span<const PlotPoint>> series;
  for (const NamedCurve& curve : curves) {
    drawn.push_back({curve.name, Thinned(curve.points, kMostPoints)});
  }
  for (const NamedCurve& curve : drawn) series.push_back(curve.points);
  const Scale x{Widened(RangeOf(series, &PlotPoint::x)), {kLeft, kRight}};
  const Scale y{Widened(RangeOf(series, &PlotPoint::y)), {kBottom, kTop}};
  std::vector<std::string> names;
  for (const NamedCurve& curve : curves) names.push_back(curve.name);
  // The height that the legend of all curves needs.
  const double legend = 2 * kTop + Svg::kLegendLine * static_cast<double>(curves.size());
  Svg svg(std::max(kHeight, legend),
          fmt::format("{} against {}: {}", y_name, x_name, Join(names, ", ")));
  svg.XAxis(x, kTop, kBottom, x_name, x_kind);
  svg.YAxis(y, kLeft, kRight, y_name);
  for (size_t i = 0; i < drawn.size(); ++i) DrawCurve(drawn[i], i, x, y, &svg);
  return std::move(svg).Finish();
}

}  // namespace syntra
