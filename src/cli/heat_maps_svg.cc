// SPDX-License-Identifier: Apache-2.0
#include "cli/heat_maps_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/divide.h"
#include "cli/svg.h"

namespace syntra {
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
