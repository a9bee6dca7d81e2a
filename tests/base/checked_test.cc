// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/base/error_of.h"

namespace syntra {
namespace {

TEST(Checked, SumsAreRightOrAnError) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(CheckedAdd(kMost - 1, 1, "bytes"), kMost);
  EXPECT_EQ(CheckedAdd(3, -5, "bytes"), -2);
  const std::string error = ErrorOf([&] { CheckedAdd(kMost, 1, "bytes"); }, ExitCode::kConfig);
  EXPECT_EQ(error,
            "9223372036854775807 and 1 bytes are more than can be counted; make the model "
            "smaller");
}

}  // namespace
}  // namespace syntra
