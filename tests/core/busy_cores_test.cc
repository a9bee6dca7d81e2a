// SPDX-License-Identifier: Apache-2.0
#include "core/busy_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "core/thread.h"

namespace syntra {
namespace {

class BusyCoresTest : public testing::Test {
 protected:
  // Steps of a second, for these shares of which the two threads have no core; the warnings.
  std::vector<std::string> Run(int steps, double first, double second) {
    std::vector<std::string> warnings;
    for (int i = 0; i < steps; ++i) {
      now_ += 1;
      waits_[0] += first;
      waits_[1] += second;
      if (const auto warning = cores_.Look()) warnings.push_back(*warning);
    }
    return warnings;
  }

  double now_ = 1000;
  std::vector<double> waits_ = {50, 60};
  BusyCores cores_{[this] { return waits_; }, [this] { return now_; }};
};

TEST_F(BusyCoresTest, OneThreadThatWaitsIsEnough) {
  const auto warnings = Run(30, 0, 0.75);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("had none for 75 % of the last 10 s"), std::string::npos)
      << warnings[0];
  EXPECT_TRUE(cores_.busy());
}

TEST_F(BusyCoresTest, ALittleIsNothing) {
  EXPECT_TRUE(Run(1000, 0.09, 0.09).empty());
  EXPECT_FALSE(cores_.busy());
}

TEST_F(BusyCoresTest, ThreadsSpinAgainOnceTheCoresAreFree) {
  Run(30, 0.5, 0);
  EXPECT_TRUE(cores_.busy());
  Run(30, 0.05, 0);  // neither busy nor free
  EXPECT_TRUE(cores_.busy());
  Run(30, 0.01, 0);
  EXPECT_FALSE(cores_.busy());
}

TEST_F(BusyCoresTest, WhatWasBeforeTheFirstStepIsNothing) {
  waits_ = {1e6, 1e6};
  EXPECT_TRUE(Run(100, 0, 0).empty());
  waits_ = {2e6, 2e6, 2e6};  // another number of threads
  EXPECT_TRUE(Run(100, 0, 0).empty());
}

TEST_F(BusyCoresTest, OneWarningInAWhile) {
  size_t warnings = 0;
  for (int i = 0; i < 20; ++i) warnings += Run(30, 0.5, 0).size() + Run(30, 0, 0).size();
  EXPECT_EQ(warnings, 2u);
}

TEST(BusyCores, KernelsThatDoNotCountAreNoReasonToWarn) {
  double now = 0;
  BusyCores cores([] { return std::vector<double>{}; }, [&] { return now += 30; });
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(cores.Look());
}

// Processor time of this thread while it waits ten times 20 ms for another one of its team.
double SecondsSpun() {
  const double before = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < 10; ++i) {
    ParallelFor(2, 1, [](int64_t begin, int64_t) {
      if (begin == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
  }
  return SecondsOf(CLOCK_THREAD_CPUTIME_ID) - before;
}

// Ends this process with code 0 if threads sleep while the cores are busy, and spin otherwise.
[[noreturn]] void EndByWhetherTheySleep() {
  SetThreadCount(2);
  double now = 0, waited = 0, share = 0.5;
  BusyCores cores(
      [&] {
        return std::vector<double>{waited += 30 * share, 0};
      },
      [&] { return now += 30; });
  const double spinning = SecondsSpun();
  cores.Look();
  cores.Look();
  const double sleeping = SecondsSpun();
  share = 0;
  cores.Look();
  const double again = SecondsSpun();
  std::fprintf(stderr, "%g s, %g s while busy, then %g s\n", spinning, sleeping, again);
  exit(sleeping < spinning / 4 && sleeping < again / 4 ? 0 : 1);
}

// In a process of its own, where threads wait as libgomp lets them by default.
TEST(BusyCoresDeathTest, ThreadsSleepWhileTheCoresAreBusy) {
  if (ProcessorCount() < 2) GTEST_SKIP() << "on one processor they never spin for long";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("GOMP_SPINCOUNT");
  EXPECT_EXIT(EndByWhetherTheySleep(), testing::ExitedWithCode(0), "while busy");
}

// Lets the calling thread and those that it makes have one core only.
void ShareOneCore() {
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

TEST(BusyCores, TheKernelCountsWhatThreadsWaitForTheirCore) {
  if (BusyCores::SecondsWithoutCore().empty()) GTEST_SKIP() << "this kernel does not count it";
  double waited = 0;
  std::thread computing([&] {
    ShareOneCore();
    SetThreadCount(1);
    std::atomic<bool> done = false;
    std::thread other([&] {
      while (!done) {
      }
    });
    const double before = BusyCores::SecondsWithoutCore()[0], begin = MonotonicSeconds();
    while (waited < 0.02 && MonotonicSeconds() - begin < 60) {
      waited = BusyCores::SecondsWithoutCore()[0] - before;
    }
    done = true;
    other.join();
  });
  computing.join();
  EXPECT_GE(waited, 0.02);
}

}  // namespace
}  // namespace syntra
