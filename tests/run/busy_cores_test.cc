// SPDX-License-Identifier: Apache-2.0
#include "run/busy_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "base/clock.h"

namespace syntra {
namespace {

class BusyCoresTest : public testing::Test {
 protected:
  // Steps of a second, of which the thread spends `share` without a core; the warnings.
  std::vector<std::string> Run(int steps, double share) {
    std::vector<std::string> warnings;
    for (int i = 0; i < steps; ++i) {
      now_ += 1;
      waited_ += share;
      if (const auto warning = cores_.Look()) warnings.push_back(*warning);
    }
    return warnings;
  }

  double now_ = 1000, waited_ = 50;
  BusyCores cores_{[this] { return waited_; }, [this] { return now_; }};
};

TEST_F(BusyCoresTest, SaysForWhichShareOfTheTime) {
  EXPECT_TRUE(Run(1, 0).empty());
  const auto warnings = Run(40, 0.75);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("for 75 % of the last 20 s no core was free"), 0u) << warnings[0];
}

TEST_F(BusyCoresTest, ALittleIsNothing) { EXPECT_TRUE(Run(1000, 0.09).empty()); }

TEST_F(BusyCoresTest, WhatWasBeforeTheFirstStepIsNothing) {
  waited_ = 1e6;
  EXPECT_TRUE(Run(100, 0).empty());
}

TEST_F(BusyCoresTest, OneWarningInAWhile) {
  EXPECT_EQ(Run(610, 0.5).size(), 1u);
  EXPECT_EQ(Run(30, 0.5).size(), 1u);
}

TEST(BusyCores, KernelsThatDoNotCountAreNoReasonToWarn) {
  double now = 0;
  BusyCores cores([] { return std::nullopt; }, [&] { return now += 30; });
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(cores.Look());
}

// Two threads that compute on one core wait for each other.
TEST(SecondsWithoutCoreTest, CountsThoseOfTheCallingThread) {
  if (!SecondsWithoutCore()) GTEST_SKIP() << "this kernel does not count them";
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  std::atomic<bool> done = false;
  double waited = 0;
  std::thread computing([&] {
    sched_setaffinity(0, sizeof one, &one);
    std::thread other([&] {
      while (!done) {
      }
    });
    const double before = *SecondsWithoutCore(), begin = MonotonicSeconds();
    while (waited < 0.02 && MonotonicSeconds() - begin < 60)
      waited = *SecondsWithoutCore() - before;
    done = true;
    other.join();
  });
  computing.join();
  EXPECT_GE(waited, 0.02);
}

}  // namespace
}  // namespace syntra
