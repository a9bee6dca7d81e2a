// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>

namespace syntra {
namespace {

TEST(Checked, SumsAreRightOrAnError) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(CheckedAdd(kMost - 1, 1, "bytes"), kMost);
  EXPECT_EQ(CheckedAdd(3, -5, "bytes"), -2);
  try {
    CheckedAdd(kMost, 1, "bytes");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_STREQ(error.what(),
                 "9223372036854775807 and 1 bytes are more than can be counted; make the model "
                 "smaller");
  }
}

}  // namespace
}  // namespace syntra
