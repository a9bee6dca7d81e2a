// SPDX-License-Identifier: Apache-2.0
#include "cli/svg.h"

#include <gtest/gtest.h>

#include "cli/pictures.h"

namespace syntra {
namespace {

std::string Drawn(double first_step, int count, double value) {
  NamedCurve curve{"run", {}};
  for (int i = 0; i < count; ++i) curve.points.push_back({first_step + i, value});
  return CurvesSvg(std::vector{curve}, "steps", "rate");
}

// Points are thinned to means, which differ in their last digits.
TEST(Svg, EqualValuesHaveAnAxis) {
  for (const int count : {1, 480, 4500, 6000, 8500}) {
    for (const double value : {0.0, 0.001, 0.01, -7.0}) {
      const std::string svg = Drawn(1, count, value);
      EXPECT_LT(svg.size(), 40000u) << count << " of " << value;
      // A level line from the axes' corner on, and marks above it.
      for (const char* part : {"points=\"76.0,370.0 ", count > 1 ? " 540.0,370.0 \"" : " \"",
                               value < 0 ? ">-6<" : ">0.2<", value < 0 ? ">-1<" : ">0.8<"}) {
        EXPECT_NE(svg.find(part), svg.npos) << part << count << " of " << value << "\n" << svg;
      }
    }
  }
}

TEST(Svg, MarksHaveDifferentTexts) {
  const std::string far = Drawn(1000001, 381, 1);
  EXPECT_NE(far.find(">1000100<"), far.npos) << far;
  EXPECT_EQ(far.find(">1.0M<"), far.npos) << far;
  const std::string wide = Drawn(1, 40000, 1);
  EXPECT_NE(wide.find(">20.0k<"), wide.npos) << wide;
}

TEST(Svg, NamesAreCutBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 60; ++i) name += "\u00e9";
  const std::pair<double, size_t> cases[] = {{-5, 0}, {7, 0}, {100, 12}, {104, 12}, {105, 13}};
  for (const auto& [width, kept] : cases) {
    EXPECT_EQ(Fitting(name, width), "\u2026" + name.substr(name.size() - 2 * kept)) << width;
  }
  EXPECT_EQ(Fitting("short", 100), "short");
}

}  // namespace
}  // namespace syntra
