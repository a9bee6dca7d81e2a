// SPDX-License-Identifier: Apache-2.0
#include "base/plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syntra {
namespace {

std::vector<PlotPoint> Falling() {
  std::vector<PlotPoint> points;
  for (int step = 1; step <= 200; ++step) {
    points.push_back({static_cast<double>(step), 4 + 6 * std::exp(-step / 40.0)});
  }
  return points;
}

std::string Drawn(const std::vector<PlotPoint>& curve, const std::vector<PlotPoint>& marks,
                  bool braille) {
  const std::span<const PlotPoint> series[] = {curve, marks};
  return "\n" + Plot(curve, marks,
                     {.columns = 40,
                      .rows = 6,
                      .braille = braille,
                      .x = RangeOf(series, &PlotPoint::x),
                      .y = RangeOf(series, &PlotPoint::y)});
}

TEST(Plot, Braille) {
  EXPECT_EQ(Drawn(Falling(), {{0, 10}, {100, 5}, {200, 4.1}}, true), R"(
10.00 │o⡀
      │ ⠘⢄
      │   ⠱⡀
      │    ⠈⠑⢄⡀
      │       ⠈⠑⠢⢄⣀    o
 4.04 │            ⠉⠉⠑⠒⠒⠢⠤⠤⠤⠤⠤⢄⣀⣀⣀⣀⣀⣀⣀⣀o
       0                             200
)");
}

TEST(Plot, Ascii) {
  EXPECT_EQ(Drawn(Falling(), {{0, 10}, {100, 5}, {200, 4.1}}, false), R"(
10.00 |o
      | ..
      |   ..
      |     ...
      |        ....... o
 4.04 |               .................o
       0                             200
)");
}

// A gap is joined, and a step that was not finite is no point.
TEST(Plot, FewPoints) {
  EXPECT_EQ(Drawn({{0, 1}, {10, NAN}, {20, 3}}, {}, false), R"(
3.00 |                              ....
     |                        ......
     |                 .......
     |          .......
     |    ......
1.00 |....
      0                               20
)");
}

TEST(Plot, OnePointOrNone) {
  const std::vector<PlotPoint> one{{5, 2}};
  EXPECT_NE(Drawn(one, {}, false).find('.'), std::string::npos);
  EXPECT_NE(Drawn({}, one, true).find('o'), std::string::npos);
  EXPECT_EQ(Drawn({}, {}, false).find('o'), std::string::npos);
}

}  // namespace
}  // namespace syntra
