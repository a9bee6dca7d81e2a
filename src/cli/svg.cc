// SPDX-License-Identifier: Apache-2.0
#include "cli/svg.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text.h"

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

// Where an axis has its marks: at multiples of 1, 2 or 5 times a power of ten, at most nine.
std::vector<double> TicksOf(const PlotRange& range) {
  const double distance = TickDistance(range);
  std::vector<double> ticks;
  for (double k = std::ceil(range.low / distance); k * distance <= range.high; ++k) {
    ticks.push_back(k * distance);
  }
  return ticks;
}

// On an axis up to large numbers all are short.
std::string TickText(double value, const PlotRange& range) {
  return range.high >= 10000 && value != 0 ? HumanCount(value) : fmt::format("{:.6g}", value);
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
  for (const double tick : TicksOf(x.values)) {
    if (is_power && tick != std::round(tick)) continue;
    Line(x(tick), top, x(tick), bottom, kGridStyle);
    Text(x(tick), bottom + 18, "middle",
         is_power ? fmt::format("{:.6g}", std::exp2(tick)) : TickText(tick, x.values));
  }
  Text((x.place.low + x.place.high) / 2, bottom + 38, "middle", name);
}

void Svg::YAxis(const Scale& y, double left, double right, const std::string& name) {
  for (const double tick : TicksOf(y.values)) {
    Line(left, y(tick), right, y(tick), kGridStyle);
    Text(left - 8, y(tick) + 4, "end", TickText(tick, y.values));
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
  return Svg::kLegendLine * static_cast<double>((names + columns - 1) / columns);
}

double WidthOf(const std::string& text) {
  return kLetter * static_cast<double>(CodePointCount(text));
}

std::string Fitting(const std::string& name, double width) {
  if (WidthOf(name) <= width) return name;
  const auto kept = static_cast<size_t>(width / kLetter) - 1;  // beside the ellipsis
  size_t begin = 0;
  while (CodePointCount(std::string_view(name).substr(begin)) > kept) ++begin;
  return "\u2026" + name.substr(begin);
}

const char* ColorAt(size_t i) { return kColors[i % kColors.size()]; }

std::string LineStyleAt(size_t i) {
  return fmt::format("stroke=\"{}\" stroke-dasharray=\"{}\" stroke-width=\"2\"", ColorAt(i),
                     kDashes[i / kColors.size() % kDashes.size()]);
}

PlotRange Widened(PlotRange range) {
  if (!(range.high > range.low)) range.high = range.low + std::max(1.0, std::abs(range.low));
  return range;
}

}  // namespace syntra
