// SPDX-License-Identifier: Apache-2.0
// Costs of collectives against closed forms and against a simulation of their messages.
#include "plan/collective_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace syntra {
namespace {

constexpr double kAlpha = 3e-6, kRate = 50e9, kBytes = 800e6;
const Link kLink{kAlpha, kRate};
const GpuNetwork kGpus{.inside = kLink, .between = {20e-6, 10e9}, .start = 0};

// A ring, message by message: in each of 2 (n - 1) rounds every rank sends one n-th to its
// neighbour, and begins when it has what it received in the round before.
double SimulatedRing(int ranks, double bytes, const Link& link) {
  std::vector<double> ready(ranks, 0);
  for (int round = 0; round < 2 * (ranks - 1); ++round) {
    std::vector<double> next(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      const int from = (rank + ranks - 1) % ranks;
      next[rank] =
          std::max(ready[rank], ready[from]) + link.latency + bytes / ranks / link.bandwidth;
    }
    ready = next;
  }
  return *std::ranges::max_element(ready);
}

TEST(CollectiveCosts, ARingIsItsMessages) {
  for (const int ranks : {2, 3, 8}) {
    for (const double bytes : {1e3, 1e6, kBytes}) {
      const double expected = SimulatedRing(ranks, bytes, kLink);
      EXPECT_NEAR(kGpus.AllReduceSeconds({1, ranks}, bytes), expected, 1e-9 * expected)
          << ranks << " " << bytes;
    }
  }
}

// 2 (n - 1) / n of the bytes cross each link.
TEST(CollectiveCosts, ALongAllReduceIsItsBytes) {
  const GpuNetwork no_latency{.inside = {0, kRate}, .between = {0, 10e9}};
  EXPECT_DOUBLE_EQ(no_latency.AllReduceSeconds({1, 8}, kBytes), 2 * 7.0 / 8 * kBytes / kRate);
  EXPECT_DOUBLE_EQ(no_latency.ReduceScatterSeconds({1, 8}, kBytes), 7.0 / 8 * kBytes / kRate);
  // The slower link counts.
  EXPECT_DOUBLE_EQ(no_latency.AllReduceSeconds({4, 8}, kBytes), 2 * 31.0 / 32 * kBytes / 10e9);
  EXPECT_DOUBLE_EQ(no_latency.ReduceSeconds({4, 8}, kBytes), kBytes / 10e9);
}

// Reduces to each rank in turn, hop by hop: the chain for owner k begins at its neighbour and ends
// at it, and each rank takes part in one after another.
TEST(CollectiveCosts, ReducesToAllRanksFollowEachOther) {
  const int ranks = 16;
  const double hop = kAlpha + 1e3 / kRate;
  std::vector<double> free(ranks, 0);
  for (int owner = 0; owner < ranks; ++owner) {
    double arrives = 0;
    for (int i = 1; i <= ranks; ++i) {
      const int rank = (owner + i) % ranks;
      free[rank] = std::max(free[rank], arrives) + hop;
      arrives = free[rank];
    }
  }
  const double simulated = *std::ranges::max_element(free);
  const Layout layout{1, ranks};
  const double expected = ranks * kGpus.ReduceSeconds(layout, 1e3) + kGpus.ChainLatency(layout);
  EXPECT_NEAR(expected, simulated, 0.1 * simulated);
}

TEST(CollectiveCosts, ScatterAndGatherAreAnAllReduce) {
  for (const Layout layout : {Layout{1, 8}, Layout{2, 4}}) {
    EXPECT_NEAR(2 * kGpus.ReduceScatterSeconds(layout, kBytes),
                kGpus.AllReduceSeconds(layout, kBytes), 1e-12);
  }
}

// A tree over 512 nodes has 9 levels; a ring would pass through all of them.
TEST(CollectiveCosts, ShortSumsOfManyNodesTakeTheTree) {
  const GpuNetwork network{.inside = {0, kRate}, .between = {20e-6, 10e9}};
  EXPECT_NEAR(network.AllReduceSeconds({512, 8}, 4), 2 * 9 * 20e-6, 1e-6);
  EXPECT_NEAR(ShortAllReduceSeconds({512, 8}, {1e-6, kRate}, {20e-6, 10e9}), 3e-6 + 9 * 20e-6,
              1e-12);
}

TEST(CollectiveCosts, OneRankSendsNothing) {
  const HostNetwork hosts{.inside = kLink, .between = kLink};
  EXPECT_EQ(kGpus.AllReduceSeconds({1, 1}, kBytes), 0);
  EXPECT_EQ(kGpus.ReduceScatterSeconds({1, 1}, kBytes), 0);
  EXPECT_EQ(kGpus.ReduceSeconds({1, 1}, kBytes), 0);
  EXPECT_EQ(hosts.AllReduceSeconds({1, 1}, kBytes), 0);
  EXPECT_EQ(ShortAllReduceSeconds({1, 1}, kLink, kLink), 0);
}

TEST(CollectiveCosts, FasterLinksNeverTakeLonger) {
  double last_gpus = INFINITY, last_hosts = INFINITY;
  for (const double rate : {1e9, 10e9, 50e9, 400e9}) {
    const GpuNetwork gpus{.inside = kLink, .between = {kAlpha, rate}};
    const HostNetwork hosts{.inside = kLink, .between = {kAlpha, rate}};
    EXPECT_LE(gpus.AllReduceSeconds({4, 8}, kBytes), last_gpus);
    EXPECT_LT(hosts.AllReduceSeconds({4, 8}, kBytes), last_hosts);
    last_gpus = gpus.AllReduceSeconds({4, 8}, kBytes);
    last_hosts = hosts.AllReduceSeconds({4, 8}, kBytes);
  }
}

// The bytes that ranks of one host read and write, counted copy by copy as dist/mpi.cc makes them.
TEST(CollectiveCosts, SharedMemoryIsItsCopies) {
  for (const int ranks : {2, 4}) {
    const double share = kBytes / ranks;
    double moved = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      moved += share * ranks + share;    // the sum of the own share, read from all ranks' vectors
      moved += 2 * share * (ranks - 1);  // a copy of the others' sums
    }
    const HostNetwork hosts{.inside = {0, kRate}, .between = {}};
    EXPECT_NEAR(hosts.AllReduceSeconds({1, ranks}, kBytes), moved / kRate, 1e-9);
  }
}

// One before the sum, one before the copies, one at the end. Of two hosts with two ranks each, a
// rank's 16 MiB go in messages of 512 KiB: 32 times a barrier on the way there and one on the way
// back.
TEST(CollectiveCosts, SharedMemoryHasItsBarriers) {
  const HostNetwork hosts{.inside = {1e-5, INFINITY}, .between = {}};
  EXPECT_NEAR(hosts.AllReduceSeconds({1, 2}, 64 << 20), 3 * 1e-5, 1e-9);
  EXPECT_NEAR(hosts.ReduceScatterSeconds({1, 2}, 64 << 20), 2 * 1e-5, 1e-9);
  EXPECT_NEAR(hosts.AllReduceSeconds({2, 2}, 64 << 20), (2 * 32 + 1) * 1e-5, 1e-9);
}

}  // namespace
}  // namespace syntra
