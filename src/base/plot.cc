// SPDX-License-Identifier: Apache-2.0
#include "base/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "base/text.h"

namespace syntra {
namespace {

bool IsFinite(const PlotPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// Place of a value among `count` dots.
int DotOf(double value, PlotRange range, int count) {
  const double width = range.high - range.low;
  const double share = width > 0 ? (value - range.low) / width : 0.5;
  return std::clamp(static_cast<int>(std::lround(share * (count - 1))), 0, count - 1);
}

// UTF-8 of U+2800 and the dots of a braille cell.
std::string Braille(unsigned dots) {
  const unsigned code = 0x2800 + dots;
  return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

// A grid of dots, 2 x 4 of them in a braille cell, else one a cell. Row 0 is the lowest.
class Canvas {
 public:
  Canvas(int columns, int rows, bool braille)
      : columns_(columns),
        rows_(rows),
        across_(braille ? 2 : 1),
        up_(braille ? 4 : 1),
        cells_(columns * rows, 0),
        marks_(columns * rows, false) {}

  int dots_across() const { return columns_ * across_; }
  int dots_up() const { return rows_ * up_; }

  void SetDot(int x, int y) {
    // Bits of a braille cell from its top: 0 1 2 6 on the left, 3 4 5 7 on the right.
    static constexpr unsigned kBits[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
    cells_[Cell(x, y)] |= kBits[x % across_][y % up_];
  }
  void SetMark(int x, int y) { marks_[Cell(x, y)] = true; }

  std::string Row(int row) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const int cell = row * columns_ + column;
      if (marks_[cell]) {
        text += 'o';
      } else if (cells_[cell] == 0) {
        text += ' ';
      } else {
        text += up_ > 1 ? Braille(cells_[cell]) : ".";
      }
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

 private:
  int Cell(int x, int y) const { return y / up_ * columns_ + x / across_; }

  int columns_, rows_, across_, up_;
  std::vector<unsigned> cells_;
  std::vector<bool> marks_;
};

// The mean of the curve's points in each column of dots; none where there is no point.
std::vector<std::optional<double>> ColumnMeans(std::span<const PlotPoint> curve, PlotRange range,
                                               int count) {
  std::vector<double> sums(count);
  std::vector<int> counts(count);
  for (const PlotPoint& point : curve) {
    if (!IsFinite(point)) continue;
    const int dot = DotOf(point.x, range, count);
    sums[dot] += point.y;
    ++counts[dot];
  }
  std::vector<std::optional<double>> means(count);
  for (int i = 0; i < count; ++i) {
    if (counts[i] > 0) means[i] = sums[i] / counts[i];
  }
  return means;
}

// Joins neighbouring points by a straight line.
void DrawCurve(std::span<const PlotPoint> curve, const PlotOptions& options, Canvas* canvas) {
  const auto means = ColumnMeans(curve, options.x, canvas->dots_across());
  int from = -1, from_dot = 0;
  for (int x = 0; x < canvas->dots_across(); ++x) {
    if (!means[x]) continue;
    const int dot = DotOf(*means[x], options.y, canvas->dots_up());
    if (from < 0) from = x, from_dot = dot;
    const int steps = std::max({x - from, std::abs(dot - from_dot), 1});
    for (int step = 0; step <= steps; ++step) {
      const double share = static_cast<double>(step) / steps;
      canvas->SetDot(from + static_cast<int>(std::lround(share * (x - from))),
                     from_dot + static_cast<int>(std::lround(share * (dot - from_dot))));
    }
    from = x, from_dot = dot;
  }
}

}  // namespace

PlotRange RangeOf(std::span<const std::span<const PlotPoint>> series,
                  double PlotPoint::*coordinate) {
  PlotRange range{std::numeric_limits<double>::infinity(),
                  -std::numeric_limits<double>::infinity()};
  for (const auto points : series) {
    for (const PlotPoint& point : points) {
      if (!IsFinite(point)) continue;
      range.low = std::min(range.low, point.*coordinate);
      range.high = std::max(range.high, point.*coordinate);
    }
  }
  return range.low <= range.high ? range : PlotRange{0, 1};
}

std::vector<PlotPoint> Thinned(std::span<const PlotPoint> points, size_t most) {
  std::vector<PlotPoint> finite, thinned;
  std::ranges::copy_if(points, std::back_inserter(finite), IsFinite);
  if (finite.size() <= most) return finite;
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = i * finite.size() / most, end = (i + 1) * finite.size() / most;
    PlotPoint sum;
    for (size_t j = begin; j < end; ++j) sum.x += finite[j].x, sum.y += finite[j].y;
    const auto count = static_cast<double>(end - begin);
    thinned.push_back({sum.x / count, sum.y / count});
  }
  return thinned;
}

std::string Plot(std::span<const PlotPoint> curve, std::span<const PlotPoint> marks,
                 const PlotOptions& options) {
  const std::string top = fmt::format("{:.2f}", options.y.high);
  const std::string bottom = fmt::format("{:.2f}", options.y.low);
  const size_t label = std::max(top.size(), bottom.size());
  const char* axis = options.braille ? "\u2502" : "|";
  Canvas canvas(std::max(options.columns - static_cast<int>(label) - 2, 8),
                std::max(options.rows, 2), options.braille);
  DrawCurve(curve, options, &canvas);
  for (const PlotPoint& mark : marks) {
    if (!IsFinite(mark)) continue;
    canvas.SetMark(DotOf(mark.x, options.x, canvas.dots_across()),
                   DotOf(mark.y, options.y, canvas.dots_up()));
  }
  std::string text;
  const int rows = std::max(options.rows, 2);
  for (int row = rows - 1; row >= 0; --row) {
    text += fmt::format("{:>{}} {}{}\n",
                        row == rows - 1 ? top
                        : row == 0      ? bottom
                                        : "",
                        label, axis, canvas.Row(row));
  }
  const std::string first = WithThousands(std::llround(options.x.low));
  const std::string last = WithThousands(std::llround(options.x.high));
  const int width = canvas.dots_across() / (options.braille ? 2 : 1);
  return text + fmt::format("{:{}}{}{:>{}}\n", "", label + 2, first, last,
                            std::max<int>(width - static_cast<int>(first.size()), 0));
}

}  // namespace syntra
