// SPDX-License-Identifier: Apache-2.0
#include "cli/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "base/divide.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr double kHeight = 420;
constexpr double kLeft = 76, kRight = 540, kTop = 20, kBottom = 370;  // of the axes
constexpr double kLegendText = kRight + 42;
constexpr size_t kMostPoints = 480;  // of a curve: more than there are pixels would be a band

// Two digits after the point for numbers such as log-perplexities; three significant digits for
// small numbers, and for thousands and more as HumanCount writes them.
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

namespace {

constexpr int64_t kMostSideBySide = 8;
constexpr double kMargin = 10, kGap = 12;
constexpr double kMostWidth = 180;  // of a map
constexpr double kGroupName = 26, kMapName = 20;
constexpr int kShades = 24;

struct Grid {
  int64_t columns;  // maps side by side
  double width;     // of a map
};

Grid GridOf(const HeatMapGroup& group) {
  const int64_t columns = std::clamp<int64_t>(std::ssize(group.maps), 1, kMostSideBySide);
  const auto count = static_cast<double>(columns);
  return {columns, std::min(kMostWidth, (Svg::kWidth - 2 * kMargin - kGap * (count - 1)) / count)};
}

// Maps of a group have equal shapes, and cells are squares.
double HeightOf(const HeatMap& map, double width) {
  return width * static_cast<double>(map.rows) / static_cast<double>(map.columns);
}

double HeightOf(const HeatMapGroup& group) {
  const Grid grid = GridOf(group);
  const auto lines = static_cast<double>(DivideUp(std::ssize(group.maps), grid.columns));
  return kGroupName + lines * (HeightOf(group.maps.front(), grid.width) + kMapName);
}

// From white to a dark blue.
std::string ColorOf(int shade) {
  constexpr std::array kDark{8.0, 48.0, 107.0};
  const double share = static_cast<double>(shade) / (kShades - 1);
  const auto part = [&](double dark) {
    return static_cast<int>(std::lround(255 - share * (255 - dark)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", part(kDark[0]), part(kDark[1]), part(kDark[2]));
}

// Neighbours of one shade in a row are one box.
void Draw(const HeatMap& map, double x, double y, double width, Svg* svg) {
  const float largest = *std::ranges::max_element(map.values);
  const double cell = width / static_cast<double>(map.columns);
  std::array<std::vector<Svg::Rectangle>, kShades> boxes;
  const auto shade_at = [&](int64_t row, int64_t column) {
    const float value = map.values[row * map.columns + column];
    return largest > 0 ? std::lround(value / largest * (kShades - 1)) : 0;
  };
  for (int64_t row = 0; row < map.rows; ++row) {
    for (int64_t begin = 0, end = 0; begin < map.columns; begin = end) {
      const auto shade = shade_at(row, begin);
      for (end = begin + 1; end < map.columns && shade_at(row, end) == shade;) ++end;
      boxes[shade].push_back({x + cell * static_cast<double>(begin),
                              y + cell * static_cast<double>(row),
                              cell * static_cast<double>(end - begin), cell});
    }
  }
  for (int shade = 0; shade < kShades; ++shade) svg->Boxes(boxes[shade], ColorOf(shade));
  const double right = x + width, bottom = y + HeightOf(map, width);
  svg->Polyline(
      std::array<PlotPoint, 5>{{{x, y}, {right, y}, {right, bottom}, {x, bottom}, {x, y}}},
      kGridStyle);
  svg->Text(x, bottom + 14, "start",
            Fitting(fmt::format("{} ({:.2g})", map.name, largest), width + kGap));
}

}  // namespace

std::string HeatMapsSvg(std::span<const HeatMapGroup> groups, const std::string& label) {
  double height = 2 * kMargin;
  for (const HeatMapGroup& group : groups) height += HeightOf(group);
  Svg svg(height, label);
  double top = kMargin;
  for (const HeatMapGroup& group : groups) {
    const Grid grid = GridOf(group);
    svg.Text(kMargin, top + 16, "start", group.name);
    for (size_t i = 0; i < group.maps.size(); ++i) {
      const auto column = static_cast<double>(i % grid.columns);
      const auto line = static_cast<double>(i / grid.columns);
      const double each = HeightOf(group.maps.front(), grid.width) + kMapName;
      Draw(group.maps[i], kMargin + column * (grid.width + kGap), top + kGroupName + line * each,
           grid.width, &svg);
    }
    top += HeightOf(group);
  }
  return std::move(svg).Finish();
}

}  // namespace syntra
