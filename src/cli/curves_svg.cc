// SPDX-License-Identifier: Apache-2.0
#include "cli/curves_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace syntra {
namespace {

constexpr double kWidth = 760, kHeight = 420, kLegendLine = 22;
constexpr double kLeft = 60, kRight = 540, kTop = 20, kBottom = 370;  // of the axes
// Told apart by people who do not see all colours (Okabe and Ito 2008).
constexpr std::array kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                             "#e69f00", "#56b4e9", "#000000"};
constexpr char kGridStyle[] = "stroke=\"#dddddd\" stroke-width=\"1.5\"";
// Once the colours are used up they come again with the next of these (SVG's stroke-dasharray).
constexpr std::array kDashes{"none", "7 3", "2 3", "9 3 2 3"};

// A distance of 1, 2 or 5 times a power of ten that cuts the range into at most eight.
double TickDistance(const PlotRange& range) {
  const double least = (range.high - range.low) / 8;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

class Picture {
 public:
  // As high as a legend of so many curves needs.
  Picture(const PlotRange& x, const PlotRange& y, size_t curves) : x_(x), y_(y) {
    const double height = std::max(kHeight, 2 * kTop + kLegendLine * static_cast<double>(curves));
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        kWidth, height);
  }

  void Axes(const std::string& x_name, const std::string& y_name) {
    for (const double x : Ticks(x_)) {
      Line(X(x), kTop, X(x), kBottom, kGridStyle);
      Text(X(x), kBottom + 18, "middle", fmt::format("{:.6g}", x));
    }
    for (const double y : Ticks(y_)) {
      Line(kLeft, Y(y), kRight, Y(y), kGridStyle);
      Text(kLeft - 8, Y(y) + 4, "end", fmt::format("{:.6g}", y));
    }
    Text((kLeft + kRight) / 2, kHeight - 12, "middle", x_name);
    text_ += fmt::format(
        "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        (kTop + kBottom) / 2, XmlText(y_name));
  }

  void Curve(const NamedCurve& curve, size_t index) {
    const std::string style = fmt::format(
        "stroke=\"{}\" stroke-dasharray=\"{}\" stroke-width=\"2\"", kColors[index % kColors.size()],
        kDashes[index / kColors.size() % kDashes.size()]);
    std::string points;
    double last = NAN;
    for (const PlotPoint& point : curve.points) {
      if (!std::isfinite(point.y)) continue;
      points += fmt::format("{:.1f},{:.1f} ", X(point.x), Y(point.y));
      last = point.y;
    }
    text_ += fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", style, points);
    const double y = kTop + 14 + kLegendLine * static_cast<double>(index);
    Line(kRight + 14, y - 4, kRight + 36, y - 4, style);
    Text(kRight + 42, y, "start", fmt::format("{}  {:.2f}", curve.name, last));
  }

  std::string Finish() && { return std::move(text_) + "</svg>\n"; }

 private:
  double X(double x) const { return kLeft + (x - x_.low) / (x_.high - x_.low) * (kRight - kLeft); }
  double Y(double y) const {
    return kBottom - (y - y_.low) / (y_.high - y_.low) * (kBottom - kTop);
  }
  static std::vector<double> Ticks(const PlotRange& range) {
    const double distance = TickDistance(range);
    std::vector<double> ticks;
    for (double k = std::ceil(range.low / distance); k * distance <= range.high; ++k) {
      ticks.push_back(k * distance);
    }
    return ticks;
  }
  void Line(double x1, double y1, double x2, double y2, const std::string& style) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                         y1, x2, y2, style);
  }
  void Text(double x, double y, const char* anchor, const std::string& text) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                         anchor, XmlText(text));
  }

  PlotRange x_, y_;
  std::string text_;
};

// Neither empty nor of no extent.
PlotRange Widened(PlotRange range) {
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

}  // namespace

std::string CurvesSvg(std::span<const NamedCurve> curves, const std::string& x_name,
                      const std::string& y_name) {
  std::vector<std::span<const PlotPoint>> series;
  for (const NamedCurve& curve : curves) series.push_back(curve.points);
  Picture picture(Widened(RangeOf(series, &PlotPoint::x)), Widened(RangeOf(series, &PlotPoint::y)),
                  curves.size());
  picture.Axes(x_name, y_name);
  for (size_t i = 0; i < curves.size(); ++i) picture.Curve(curves[i], i);
  return std::move(picture).Finish();
}

}  // namespace syntra
