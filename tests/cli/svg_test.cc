// SPDX-License-Identifier: Apache-2.0
#include "cli/svg.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/curves_svg.h"

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
  for (const double width : {-5.0, 7.0, 100.0, 101.0}) {
    const std::string cut = Fitting(name, width);
    EXPECT_TRUE(IsUtf8(cut)) << width;
    EXPECT_LE(CodePointCount(cut), 14u) << width;
  }
  EXPECT_EQ(Fitting("short", 100), "short");
}

}  // namespace
}  // namespace syntra
