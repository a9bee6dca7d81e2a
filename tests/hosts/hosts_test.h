// SPDX-License-Identifier: Apache-2.0
// A test of a tiny run or of a smaller program on several hosts; skipped where there can be none.
#pragma once

#include <optional>

#include "tests/e2e/tiny_run.h"
#include "tests/hosts/virtual_hosts.h"

namespace syntra {

class HostsTest : public TinyRun {
 protected:
  explicit HostsTest(int hosts) : count_(hosts) {}
  void SetUp() override {
    TinyRun::SetUp();
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    hosts_.emplace(scratch_ / "hosts", count_);
    if (!hosts_->missing().empty()) GTEST_SKIP() << hosts_->missing();
  }
  // What still runs would write into the directory that is removed.
  void TearDown() override {
    hosts_.reset();
    TinyRun::TearDown();
  }

  std::optional<VirtualHosts> hosts_;

 private:
  int count_;
};

// With EXACT sums, so that a run on hosts is compared with one rank.
class RunOnHosts : public HostsTest {
 protected:
  using HostsTest::HostsTest;
  static Arguments Settings(int64_t steps) {
    return {fmt::format("train.steps={}", steps),
            "optimizer.schedule.kind=CONSTANT",
            "train.reduction=EXACT",
            "train.micro_batch_size=2",
            "train.compare_replicas_every=5",
            "evaluation.every=20"};
  }
  // The trace of a run of one rank.
  std::string Straight(int64_t steps) const {
    const std::string name = fmt::format("straight-{}", steps);
    Train(name, Settings(steps));
    return Trace(Directory(name), steps);
  }
};

}  // namespace syntra
