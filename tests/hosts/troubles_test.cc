// SPDX-License-Identifier: Apache-2.0
// A host of a run is lost or freezes, or its link is cut: the job ends with code 7 and names ranks
// and host, and the run continues elsewhere to the bits of one that nothing happened to.
#include <signal.h>

#include <memory>

#include "tests/hosts/hosts_test.h"

namespace syntra {
namespace {

// What happens to one of two hosts.
struct Trouble {
  const char* name;
  const char* sound;  // the host that stays, with the launcher and ranks 0 and 1
  const char* odd;    // the other one
  void (*strike)(const VirtualHosts&, const char* odd);
  const char* says;  // what is printed
};

constexpr Trouble kTroubles[] = {
    // The connections break, which Open MPI notices and says.
    {"killed", "node1", "node2",
     [](const VirtualHosts& hosts, const char* odd) { hosts.Signal(odd, "KILL"); }, "node2"},
    // Nobody tells the others.
    {"power", "node3", "node4",
     [](const VirtualHosts& hosts, const char* odd) { hosts.PowerOff(odd); },
     "no report from ranks 2-3 on node4: frozen, lost"},
    {"frozen", "node5", "node6",
     [](const VirtualHosts& hosts, const char* odd) { hosts.Signal(odd, "STOP"); },
     "no report from ranks 2-3 on node6: frozen, lost"},
    // Every rank is there, and can write to the run directory.
    {"cut", "node7", "node8", [](const VirtualHosts& hosts, const char* odd) { hosts.Unplug(odd); },
     "every rank reports, so none is frozen: look at the network between the hosts first"}};

class Troubles : public RunOnHosts {
 protected:
  Troubles() : RunOnHosts(8) {}

  // Begins a run, which saves its fifth step, and strikes.
  std::unique_ptr<Program> Strike(const Trouble& trouble) const {
    // Long enough for a busy machine. A rank may be hit in any phase, or as it alone has left one:
    // with the same limit for all phases, what is alive reports at the same time.
    const std::string limits =
        "SYNTRA_WATCHDOG=step=20,step_medians=1,first_steps=60,evaluation=20,compare=20,save=20,"
        "between=20,gather=3";
    auto run = std::make_unique<Program>(
        scratch_, Pretrain(trouble.name, Settings(1'000'000)),
        hosts_->Start(fmt::format("{}:2,{}:2", trouble.sound, trouble.odd), {limits}));
    // A save is written beside the steps after it.
    EXPECT_TRUE(WaitUntil([&] {
      return (LastLoggedStep(trouble.name) >= 7 && NewestStep(trouble.name) >= 5) ||
             !run->running();
    }));
    trouble.strike(*hosts_, trouble.odd);
    return run;
  }
  void ExpectContinues(const Trouble& trouble) const {
    const int64_t steps = NewestStep(trouble.name) + 2;
    EXPECT_GE(steps, 7);
    Train(trouble.name, Settings(steps), hosts_->Start("node1:2,node3:2"));
    EXPECT_EQ(Trace(Directory(trouble.name), steps), Straight(steps));
  }
};

TEST_F(Troubles, EndTheJobAreNamedAndTheRunContinuesElsewhere) {
  std::vector<std::unique_ptr<Program>> runs;
  for (const Trouble& trouble : kTroubles) runs.push_back(Strike(trouble));
  for (size_t i = 0; i < runs.size(); ++i) {
    const Trouble& trouble = kTroubles[i];
    SCOPED_TRACE(trouble.name);
    const Outcome outcome = runs[i]->Wait();
    EXPECT_EQ(outcome.code, 7) << outcome.err;
    EXPECT_TRUE(outcome.Says(trouble.says)) << outcome.err;
    EXPECT_TRUE(WaitUntil([&] { return hosts_->Processes(trouble.sound) == 0; }));
    ExpectContinues(trouble);
  }
  // A host that wakes up finds its job gone, and leaves the run alone, which has gone on.
  const std::string before = Trace(Directory("frozen"), NewestStep("frozen"));
  EXPECT_GT(hosts_->Processes("node6"), 1);
  hosts_->Signal("node6", "CONT");
  EXPECT_TRUE(WaitUntil([&] { return hosts_->Processes("node6") == 0; }));
  EXPECT_EQ(Trace(Directory("frozen"), NewestStep("frozen")), before);
}

// It has the lock, and could go on. When it is switched off, the run continues.
TEST_F(Troubles, AFrozenHostWithRank0KeepsItsRun) {
  const Trouble trouble{
      "run", "node5", "node6",
      [](const VirtualHosts& hosts, const char*) { hosts.Signal("node5", "STOP"); },
      "no report from ranks 0-1 on node5: frozen, lost"};
  const std::unique_ptr<Program> run = Strike(trouble);
  // Its launcher is frozen, too, and prints nothing.
  const Path log = Directory("run") / "log/rank-0002.log";
  EXPECT_TRUE(WaitUntil([&] { return ReadWholeFile(log).find(trouble.says) != std::string::npos; }))
      << ReadWholeFile(log);
  const Arguments settings = Settings(NewestStep("run") + 2);
  const Outcome refused = Run(Pretrain("run", settings), hosts_->Start("node1:2,node3:2"));
  EXPECT_EQ(refused.code, 8) << refused.err;
  EXPECT_TRUE(refused.Says(" on node5")) << refused.err;
  hosts_->PowerOff("node5");
  EXPECT_EQ(run->Wait().code, 1000 + SIGKILL);
  ExpectContinues(trouble);
}

}  // namespace
}  // namespace syntra
