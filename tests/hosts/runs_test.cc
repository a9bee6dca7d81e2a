// SPDX-License-Identifier: Apache-2.0
// Whole runs on several hosts have the bits of one host. A slow host is named; with a slow link
// they are slow.
#include "tests/hosts/hosts_test.h"

namespace syntra {
namespace {

class Runs : public RunOnHosts {
 protected:
  Runs() : RunOnHosts(4) {}
};

TEST_F(Runs, HaveTheBitsOfOneHost) {
  Train("exact", Settings(20), hosts_->Start("node1:2,node2:2"));
  EXPECT_EQ(Trace(Directory("exact"), 20), Straight(20));
  // More than the gradients of twenty steps went over the network.
  EXPECT_GT(hosts_->Sent("node2"), 20 * 50000 * 4);
  // By any reduction the tree over ranks is the same.
  const Arguments sharded{"train.sharding=OPTIMIZER_STATE"};
  Train("hosts", sharded, hosts_->Start("node1:1,node2:1,node3:1,node4:1"));
  Train("host", sharded, {.ranks = 4});
  EXPECT_EQ(Trace(Directory("hosts"), 20), Trace(Directory("host"), 20));
}

// The link is full with each step's sums. Nobody is blamed: every rank is ready in time.
TEST_F(Runs, OverASlowLinkAreSlow) {
  const auto reduce_seconds = [&](const std::string& name) {
    double seconds = 0;
    for (const Json& line : Metrics(name)) {
      if (line.contains("reduce_seconds")) seconds += line.at("reduce_seconds").get<double>();
    }
    return seconds;
  };
  constexpr int64_t kBits = 40'000'000;
  hosts_->Limit("node2", kBits);
  const int64_t before = hosts_->Sent("node2");
  const Outcome outcome = Run(Pretrain("slow", Settings(20)), hosts_->Start("node1:2,node2:2"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Trace(Directory("slow"), 20), Straight(20));
  EXPECT_FALSE(outcome.Says("slows down all")) << outcome.err;
  const double seconds = static_cast<double>(hosts_->Sent("node2") - before) * 8 / kBits;
  EXPECT_GT(reduce_seconds("slow"), seconds / 2);  // the rest is sent at the start and in between
}

TEST_F(Runs, ASlowHostIsNamed) {
  const Outcome outcome =
      Run(Pretrain("run", Settings(20)),
          hosts_->Start("node1:2,node2:2", {"SYNTRA_FAILPOINT=slow_rank@1-20:3"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("warning rank 3 on node2 slows down all 4 ranks: ")) << outcome.err;
  EXPECT_EQ(Trace(Directory("run"), 20), Straight(20));
}

TEST_F(Runs, FiguresAreMeasuredOnOneHost) {
  const Path figures = scratch_ / "machine.textproto";
  const Outcome outcome =
      Run({"plan", config_.string(), "--measure", figures.string(), "--set", "train.device=CPU"},
          hosts_->Start("node1:1,node2:1"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.Says("--measure measures one host; start all ranks there")) << outcome.err;
  EXPECT_FALSE(Exists(figures));
}

}  // namespace
}  // namespace syntra
