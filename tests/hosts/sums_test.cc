// SPDX-License-Identifier: Apache-2.0
// Sums over ranks of several hosts: their values, their bits, what goes over the network, and what
// becomes of them when a host or a link is slow, silent for a while, or lost.
#include <signal.h>

#include "base/clock.h"
#include "base/text.h"
#include "tests/hosts/hosts_test.h"

namespace syntra {
namespace {

constexpr int64_t kElements = 300007;
constexpr double kVector = kElements * 4.0;  // bytes
// In a round: an all-reduce, and a reduce-scatter whose sums are gathered.
constexpr double kVectorsInARound = 2;

class Sums : public HostsTest {
 protected:
  Sums() : HostsTest(4) {}

  // Ranks that sum.
  StartOptions Ranks(const std::string& hosts, const Arguments& options = {}) const {
    StartOptions start = hosts_->Start(hosts, {"OMP_NUM_THREADS=1"}, options);
    start.program = SYNTRA_SUM_RANK;
    return start;
  }
  static Arguments Rounds(int64_t rounds) {
    return {std::to_string(rounds), std::to_string(kElements)};
  }
  // What every rank of a job received, as one text. `places`: what rank 0 prints of where ranks
  // are.
  std::string Received(const Outcome& outcome, std::string* places = nullptr) const {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string received;
    for (const std::string& line : Split(outcome.out, '\n')) {
      const size_t at = line.find(", received ");
      if (at == line.npos) continue;
      if (places) *places += line.substr(0, at) + '\n';
      const std::string its = line.substr(at);
      EXPECT_TRUE(received.empty() || its == received) << outcome.out;
      received = its;
    }
    EXPECT_FALSE(received.empty()) << outcome.out << outcome.err;
    return received;
  }

  // Starts ranks on two hosts, and disturbs them when they have begun; they must end as if nothing
  // had happened. Returns the seconds that they took.
  template <typename Disturb>
  double ExpectSameBits(const Disturb& disturb) {
    const std::string expected = Received(Run(Rounds(kRounds), Ranks("node1:4")));
    const double start = MonotonicSeconds();
    Program ranks(scratch_, Rounds(kRounds), Ranks("node1:2,node2:2"));
    EXPECT_TRUE(WaitUntil([&] { return ranks.Errors().find("begun") != std::string::npos; }));
    disturb();
    EXPECT_EQ(Received(ranks.Wait()), expected);
    return MonotonicSeconds() - start;
  }

  static constexpr int64_t kRounds = 20;
};

// The contract of communicators: each sum is the tree's, bit for bit.
TEST_F(Sums, AreTheTreeOnTwoAndFourHosts) {
  for (const char* hosts : {"node1:2,node2:2", "node1:1,node2:1,node3:1,node4:1"}) {
    StartOptions start = hosts_->Start(hosts, {"OMP_NUM_THREADS=1"});
    start.program = SYNTRA_COMMUNICATOR_TEST;
    const Outcome outcome = Run({"host"}, start);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("[  PASSED  ]"), std::string::npos) << outcome.out;
  }
}

TEST_F(Sums, HaveTheBitsOfOneHost) {
  const std::string four = Received(Run(Rounds(2), Ranks("node1:4")));
  std::string places;
  EXPECT_EQ(Received(Run(Rounds(2), Ranks("node1:2,node2:2")), &places), four);
  EXPECT_EQ(places,
            "rank 0: 0 of 2 on node1\nrank 1: 1 of 2 on node1\n"
            "rank 2: 0 of 2 on node2\nrank 3: 1 of 2 on node2\n");
  for (const char* hosts :
       {"node1:1,node2:1,node3:1,node4:1", "node1:1,node2:3", "node2:3,node1:1"}) {
    EXPECT_EQ(Received(Run(Rounds(2), Ranks(hosts))), four) << hosts;
  }
  // Groups of two ranks, but not of a power of two of hosts.
  EXPECT_EQ(Received(Run(Rounds(2), Ranks("node1:2,node2:2,node3:2"))),
            Received(Run(Rounds(2), Ranks("node1:6"))));
}

// Ranks of a host add their vectors before they send anything; if neighbours are on different
// hosts they cannot, without leaving the order of sums.
TEST_F(Sums, OfAHostGoOverTheNetworkOnce) {
  const auto sent = [&](const Arguments& options, const char* where) {
    std::string places;
    const int64_t before = hosts_->Sent("node2");
    const std::string received =
        Received(Run(Rounds(10), Ranks("node1:2,node2:2", options)), &places);
    EXPECT_NE(places.find(where), std::string::npos) << places;
    return std::pair((hosts_->Sent("node2") - before) / (10 * kVectorsInARound * kVector),
                     received);
  };
  const auto [together, received] = sent({}, "rank 1: 1 of 2 on node1");
  const auto [apart, same] = sent({"--map-by", "node"}, "rank 1: 0 of 2 on node2");
  EXPECT_EQ(received, same);
  // Two hosts: half of the vector for its sum, and half of it as the sum.
  EXPECT_GT(together, 0.95);
  EXPECT_LT(together, 1.2);
  EXPECT_GT(apart, 1.5);
}

TEST_F(Sums, OverASlowLinkAreTheSameAndSlow) {
  constexpr int64_t kBits = 200'000'000;
  hosts_->Limit("node2", kBits);
  const int64_t before = hosts_->Sent("node2");
  const double seconds = ExpectSameBits([] {});
  const auto sent = static_cast<double>(hosts_->Sent("node2") - before);
  EXPECT_GT(sent, kRounds * kVectorsInARound * kVector * 0.95);
  EXPECT_GT(seconds, sent * 8 / kBits);
}

TEST_F(Sums, OutliveALinkThatIsCutForAWhile) {
  const double seconds = ExpectSameBits([&] {
    hosts_->Unplug("node2");
    SleepSeconds(1);
    hosts_->Plug("node2");
  });
  EXPECT_GT(seconds, 1);
}

TEST_F(Sums, OutliveAHostThatIsFrozenForAWhile) {
  const double seconds = ExpectSameBits([&] {
    hosts_->Signal("node2", "STOP");
    SleepSeconds(1);
    hosts_->Signal("node2", "CONT");
  });
  EXPECT_GT(seconds, 1);
}

// The connections break: mpirun or a rank notices, and nothing stays.
TEST_F(Sums, EndWhereAHostIsLost) {
  for (const char* lost : {"node2", "node1"}) {
    Program ranks(scratch_, Rounds(1'000'000), Ranks("node1:2,node2:2"));
    ASSERT_TRUE(WaitUntil([&] { return ranks.Errors().find("begun") != std::string::npos; }));
    hosts_->Signal(lost, "KILL");
    const Outcome outcome = ranks.Wait();
    // That of node1 was the launcher's, too.
    EXPECT_EQ(outcome.code, lost == std::string("node2") ? 7 : 1000 + SIGKILL) << outcome.err;
    for (const char* host : {"node1", "node2"}) {
      EXPECT_TRUE(WaitUntil([&] { return hosts_->Processes(host) == 0; })) << host;
    }
  }
}

}  // namespace
}  // namespace syntra
