// SPDX-License-Identifier: Apache-2.0
#include "base/control_group.h"

#include <gtest/gtest.h>

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

TEST_F(ControlGroups, ProcessorsAreTimeOfAPeriod) {
  EXPECT_EQ(ControlGroupCpus(root_), std::nullopt);
  Write("proc/self/cgroup", "0::/slice/job\n");
  Write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(ControlGroupCpus(root_), std::nullopt);
  Write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(ControlGroupCpus(root_), 1.5);
  Write("proc/self/cgroup", "4:cpu,cpuacct:/docker/1f\n");
  Write("sys/fs/cgroup/cpu/docker/1f/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/docker/1f/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ControlGroupCpus(root_), std::nullopt);
  Write("sys/fs/cgroup/cpu/docker/1f/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(ControlGroupCpus(root_), 4);
}

}  // namespace
}  // namespace syntra
