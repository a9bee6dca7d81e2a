// SPDX-License-Identifier: Apache-2.0
// Curves in text: braille dots, or one character a cell where the terminal writes only ASCII.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace syntra {

struct PlotPoint {
  double x = 0, y = 0;
};

struct PlotRange {
  double low = 0, high = 0;
};

struct PlotOptions {
  int columns = 72, rows = 12;  // of the whole plot without the line below it
  bool braille = true;
  PlotRange x, y;  // what the axes show; RangeOf gives them
};

// From the least to the greatest finite value of a coordinate.
PlotRange RangeOf(std::span<const std::span<const PlotPoint>> series,
                  double PlotPoint::*coordinate);

// At most `most` points. If there are more, each result is the mean of neighbouring points. Points
// whose y is not finite are left out.
std::vector<PlotPoint> Thinned(std::span<const PlotPoint> points, size_t most);

// Draws `curve` as a line and `marks` as "o" over it, and labels the ends of both axes. Where
// several points of the curve share a column of dots, their mean is drawn. Points that are not
// finite are left out. Every line ends with '\n'.
std::string Plot(std::span<const PlotPoint> curve, std::span<const PlotPoint> marks,
                 const PlotOptions& options);

}  // namespace syntra
