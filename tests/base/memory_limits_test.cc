// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

class ControlGroups : public testing::Test {
 protected:
  void SetUp() override { root_ = ScratchDirectory("control-groups"); }
  void Write(const std::string& path, const std::string& text) const {
    CreateDirectories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Path root_;
};

TEST_F(ControlGroups, TheSmallestOfTheGroupsAround) {
  Write("proc/self/cgroup", "0::/slice/job\n");
  Write("sys/fs/cgroup/slice/memory.max", "3000000\n");
  Write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  EXPECT_EQ(ControlGroupMemory(root_), 3000000);
  Write("sys/fs/cgroup/memory.max", "2000000\n");
  EXPECT_EQ(ControlGroupMemory(root_), 2000000);
}

TEST_F(ControlGroups, VersionOne) {
  Write("proc/self/cgroup", "9:cpu,memory:/docker/1f\n0::/\n");
  Write("sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "5000000\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(ControlGroupMemory(root_), 5000000);
}

TEST_F(ControlGroups, NoLimit) {
  EXPECT_EQ(ControlGroupMemory(root_), std::nullopt);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(ControlGroupMemory(root_), std::nullopt);
}

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
