// SPDX-License-Identifier: Apache-2.0
#include "run/skipped_steps.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

TEST(SkippedSteps, AsManyAsTheLimitInAHundred) {
  SkippedSteps steps(2);
  for (const int64_t step : {1, 2}) steps.Count(step, true);
  for (int64_t step = 3; step <= 100; ++step) steps.Count(step, false);
  EXPECT_EQ(steps.ToText(), "1 2");
  // Step 1 is not among the last hundred any more.
  steps.Count(101, true);
  EXPECT_EQ(steps.ToText(), "2 101");
  steps.Count(102, true);
  ErrorOf([&] { steps.Count(103, true); }, ExitCode::kDiverged);
}

TEST(SkippedSteps, TextRestores) {
  SkippedSteps steps(2), restored(2);
  restored.Count(1, true);
  restored.Restore(steps.ToText());
  EXPECT_EQ(restored.ToText(), "");
  for (const int64_t step : {7, 9}) steps.Count(step, true);
  restored.Restore(steps.ToText());
  EXPECT_EQ(restored.ToText(), "7 9");
  EXPECT_THROW(restored.Count(10, true), Error);
}

TEST(SkippedSteps, ForeignTextIsRefused) {
  for (const char* text : {" ", "7 ", "x", "9 7", "7 7", "-1", "0"}) {
    SkippedSteps steps(2);
    EXPECT_THROW(steps.Restore(text), Error) << text;
  }
}

}  // namespace
}  // namespace syntra
