// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace syntra {
namespace {

TEST(MemoryLimits, TheMachineIsAlwaysOne) {
  EXPECT_GT(MemoryLimits().at(0).bytes, int64_t{64} << 20);
}

// As those of a process that ends while they are read.
TEST(KernelFiles, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(KernelFile("/proc/self/mem"), "");  // nothing lies at address 0
  EXPECT_EQ(KernelFile("/proc/none"), "");
  EXPECT_NE(KernelFile("/proc/self/stat"), "");
}

}  // namespace
}  // namespace syntra
