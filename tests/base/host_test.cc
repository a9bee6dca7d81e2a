// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

// As those of a process that ends while they are read.
TEST(KernelFiles, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(KernelFile("/proc/self/mem"), "");  // nothing lies at address 0
  EXPECT_EQ(KernelFile("/proc/none"), "");
  EXPECT_NE(KernelFile("/proc/self/stat"), "");
}

}  // namespace
}  // namespace syntra
