// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limits.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

TEST(MemoryLimits, TheMachineIsAlwaysOne) {
  EXPECT_GT(MemoryLimits().at(0).bytes, int64_t{64} << 20);
}

}  // namespace
}  // namespace syntra
