// SPDX-License-Identifier: Apache-2.0
// Pictures as SVG, for pages and papers: the common parts of curves, bars and events. Inside a
// page, the page's style may give other colours to text and to elements of the class "paper" or
// "grid".
#pragma once

#include <span>
#include <string>

#include "base/plot.h"

namespace syntra {

// From a range of values to one of coordinates.
struct Scale {
  PlotRange values, place;
  double operator()(double value) const {
    return place.low + (value - values.low) / (values.high - values.low) * (place.high - place.low);
  }
};

// The kind of numbers along an axis; for powers of two, a scale has the exponents.
enum class AxisKind { kLinear, kPowersOfTwo };

class Svg {
 public:
  // `label` says in words what the picture shows, for those who cannot see it. Texts may come from
  // anywhere, here and below.
  Svg(double height, const std::string& label);

  void Line(double x1, double y1, double x2, double y2, const std::string& style);
  // `tip` is shown where a mouse rests on it.
  void Box(double x, double y, double width, double height, const std::string& color,
           const std::string& tip);
  struct Rectangle {
    double x, y, width, height;
  };
  // Many boxes of one colour, without tips.
  void Boxes(std::span<const Rectangle> boxes, const std::string& color);
  // `anchor`: "start", "middle" or "end" of the text lies at x.
  void Text(double x, double y, const char* anchor, const std::string& text);
  // Reads upwards, its middle at (x, y).
  void TextUpwards(double x, double y, const std::string& text);
  // Points in the picture's coordinates.
  void Polyline(std::span<const PlotPoint> points, const std::string& style);

  // An axis at the lower end of [top, bottom], with lines up from its marks and its name below; it
  // takes kAxisHeight below `bottom`.
  void XAxis(const Scale& x, double top, double bottom, const std::string& name,
             AxisKind kind = AxisKind::kLinear);
  // An axis at the left end of [left, right], with lines to the right; its name stands at the
  // picture's left edge.
  void YAxis(const Scale& y, double left, double right, const std::string& name);
  // Boxes of ColorAt with their names, in columns of this width, from `top` down.
  void Legend(std::span<const std::string> names, double column, double top);

  std::string Finish() && { return std::move(text_) + "</svg>\n"; }

  static constexpr double kWidth = 760;  // of all pictures
  static constexpr double kTop = 10;     // free above bars and rows
  static constexpr double kNames = 160;  // what their names take on the left
  static constexpr double kAxisHeight = 50;
  static constexpr double kLegendLine = 22;  // the height of a line of a legend

 private:
  std::string text_;
};

// The height of such a legend.
double LegendHeight(size_t names, double column);

// About how much room a text takes.
double WidthOf(const std::string& text);
// The end of `name`, with an ellipsis before it where it would not fit into `width`. The end of a
// path tells most.
std::string Fitting(const std::string& name, double width);

// The i-th of a set of colours that colour-blind people can tell apart; the colours repeat.
const char* ColorAt(size_t i);
// The style of the i-th line: a colour and, once the colours are used up, dashes.
std::string LineStyleAt(size_t i);
inline constexpr char kGridStyle[] = "class=\"grid\" stroke=\"#dddddd\" stroke-width=\"1.5\"";

// `range`, widened if needed so that low < high.
PlotRange Widened(PlotRange range);

}  // namespace syntra
