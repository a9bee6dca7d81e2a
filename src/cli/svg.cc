// SPDX-License-Identifier: Apache-2.0
#include "cli/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/divide.h"
#include "base/text.h"
#include "base/utf8.h"

namespace syntra {
namespace {

// Okabe and Ito 2008, and a grey.
constexpr std::array kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                             "#e69f00", "#56b4e9", "#000000", "#999999"};
// SVG's stroke-dasharray.
constexpr std::array kDashes{"none", "7 3", "2 3", "9 3 2 3"};

constexpr double kLegendMargin = 20;
// About as wide as a letter is at the pictures' size.
constexpr double kLetter = 7.5;

size_t LegendColumns(double column) {
  return static_cast<size_t>((Svg::kWidth - kLegendMargin) / column);
}

// A distance of 1, 2 or 5 times a power of ten that cuts the range into at most eight.
double TickDistance(const PlotRange& range) {
  const double least = (range.high - range.low) / 8;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

struct Tick {
  double value;
  std::string text;
};

// Where an axis has its marks: at multiples of 1, 2 or 5 times a power of ten, at most nine. On an
// axis up to large numbers their texts are short, unless that makes two of them the same.
std::vector<Tick> TicksOf(const PlotRange& range) {
  const double distance = TickDistance(range), first = std::ceil(range.low / distance);
  const bool large = range.high >= 10000;
  std::vector<Tick> ticks;
  for (int k = 0; k < 9 && (first + k) * distance <= range.high; ++k) {
    const double value = (first + k) * distance;
    ticks.push_back(
        {value, large && value != 0 ? HumanCount(value) : fmt::format("{:.6g}", value)});
  }
  if (std::ranges::adjacent_find(ticks, {}, &Tick::text) != ticks.end()) {
    for (Tick& tick : ticks) tick.text = fmt::format("{:.10g}", tick.value);
  }
  return ticks;
}

std::string SafeText(const std::string& text) { return XmlText(Printable(text)); }

}  // namespace

Svg::Svg(double height, const std::string& label)
    : text_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
          "height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\" "
          "aria-label=\"{2}\">\n"
          "<rect class=\"paper\" width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
          kWidth, height, SafeText(label))) {}

void Svg::Line(double x1, double y1, double x2, double y2, const std::string& style) {
  text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                       y1, x2, y2, style);
}

void Svg::Box(double x, double y, double width, double height, const std::string& color,
              const std::string& tip) {
  text_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
      "<title>{}</title></rect>\n",
      x, y, width, height, color, SafeText(tip));
}

void Svg::Boxes(std::span<const Rectangle> boxes, const std::string& color) {
  if (boxes.empty()) return;
  std::string path;
  for (const Rectangle& box : boxes) {
    path += fmt::format("M{:.2f} {:.2f}h{:.2f}v{:.2f}h{:.2f}z", box.x, box.y, box.width, box.height,
                        -box.width);
  }
  text_ += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", color, path);
}

void Svg::Text(double x, double y, const char* anchor, const std::string& text) {
  text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       anchor, SafeText(text));
}

void Svg::TextUpwards(double x, double y, const std::string& text) {
  text_ += fmt::format(
      "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", x, y,
      SafeText(text));
}

void Svg::Polyline(std::span<const PlotPoint> points, const std::string& style) {
  std::string places;
  for (const PlotPoint& point : points) places += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  text_ += fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", style, places);
}

void Svg::XAxis(const Scale& x, double top, double bottom, const std::string& name, AxisKind kind) {
  const bool is_power = kind == AxisKind::kPowersOfTwo;
  for (const auto& [value, text] : TicksOf(x.values)) {
    if (is_power && value != std::round(value)) continue;
    Line(x(value), top, x(value), bottom, kGridStyle);
    Text(x(value), bottom + 18, "middle",
         is_power ? fmt::format("{:.6g}", std::exp2(value)) : text);
  }
  Text((x.place.low + x.place.high) / 2, bottom + 38, "middle", name);
}

void Svg::YAxis(const Scale& y, double left, double right, const std::string& name) {
  for (const auto& [value, text] : TicksOf(y.values)) {
    Line(left, y(value), right, y(value), kGridStyle);
    Text(left - 8, y(value) + 4, "end", text);
  }
  TextUpwards(16, (y.place.low + y.place.high) / 2, name);
}

void Svg::Legend(std::span<const std::string> names, double column, double top) {
  const size_t columns = LegendColumns(column);
  for (size_t i = 0; i < names.size(); ++i) {
    const double x = kLegendMargin + column * static_cast<double>(i % columns);
    const double y = top + kLegendLine * static_cast<double>(i / columns);
    Box(x, y, 12, 12, ColorAt(i), names[i]);
    Text(x + 18, y + 11, "start", names[i]);
  }
}

double LegendHeight(size_t names, double column) {
  const size_t columns = LegendColumns(column);
  return Svg::kLegendLine * static_cast<double>(DivideUp(names, columns));
}

double WidthOf(const std::string& text) {
  return kLetter * static_cast<double>(CodePointCount(text));
}

std::string Fitting(const std::string& name, double width) {
  if (WidthOf(name) <= width) return name;
  const double room = std::max(width / kLetter - 1, 0.0);  // beside the ellipsis
  size_t begin = 0;
  for (size_t left = CodePointCount(name); static_cast<double>(left) > room; --left) {
    do ++begin;
    while (begin < name.size() && ContinuesCharacter(name[begin]));
  }
  return "\u2026" + name.substr(begin);
}

const char* ColorAt(size_t i) { return kColors[i % kColors.size()]; }

std::string LineStyleAt(size_t i) {
  return fmt::format("stroke=\"{}\" stroke-dasharray=\"{}\" stroke-width=\"2\"", ColorAt(i),
                     kDashes[i / kColors.size() % kDashes.size()]);
}

PlotRange Widened(PlotRange range) {
  // Means of equal values differ in their last digits.
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  if (!(range.high - range.low > 1e-9 * size)) range.high = range.low + std::max(1.0, size);
  return range;
}

}  // namespace syntra
