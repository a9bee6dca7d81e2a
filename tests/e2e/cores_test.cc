// SPDX-License-Identifier: Apache-2.0
// The ranks of a host compute on cores of their own, and say so; they manage without shared memory.
#include <sched.h>

#include "base/host.h"
#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Cores : public TinyRun {
 protected:
  void SetUp() override {
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "one processor";
    TinyRun::SetUp();
  }

  // Of each of two ranks; of both where they have the same.
  std::vector<std::string> CpusOfTwo(const std::string& name, StartOptions options) const {
    options.ranks = 2;
    const Outcome outcome = Run(Pretrain(name, {"train.steps=3"}), options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string start = "cores: the ranks of " + HostName() + " compute on cpus ";
    for (const std::string& line : Split(outcome.err, '\n')) {
      const size_t at = line.find(start);
      if (at == line.npos) continue;
      std::vector<std::string> cpus;
      for (const std::string& list : Split(line.substr(at + start.size()), ';')) {
        cpus.emplace_back(StripSpace(list));
      }
      return cpus;
    }
    ADD_FAILURE() << outcome.err;
    return {};
  }
};

TEST_F(Cores, RanksDivideThoseThatTheyMayUse) {
  const std::vector<std::string> own = CpusOfTwo("own", {});
  ASSERT_EQ(own.size(), 2u);
  EXPECT_NE(own[0], own[1]);
  const std::vector<std::string> all{AllowedCpus()};
  EXPECT_EQ(CpusOfTwo("unbound", {.environment = {"SYNTRA_BINDING=none"}}), all);
  // More than one cannot be had from a mask of one.
  const std::string first = all[0].substr(0, all[0].find_first_of(",-"));
  EXPECT_EQ(CpusOfTwo("masked", {.wrapper = {"taskset", "--cpu-list", first}}), std::vector{first});
}

// Each rank lacks memory for its slot; the first one says it for all.
TEST_F(Cores, AFullSharedMemoryIsSaidOnce) {
  if (std::system("unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs here";
  }
  // Open MPI's own shared memory stays elsewhere.
  const std::string own = "OMPI_MCA_btl_vader_backing_directory=" + scratch_.string();
  const Outcome outcome =
      Run(Pretrain("run", {"train.steps=3", "train.batch_size=9"}),
          {.ranks = 3,
           .environment = {own},
           .wrapper = {"unshare", "-m", "bash", "-c",
                       "mount -t tmpfs -o size=1m tmpfs /dev/shm && exec \"$@\"", "bash"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("warning the 3 ranks of " + HostName() + " cannot reserve "))
      << outcome.err;
  EXPECT_TRUE(outcome.Says("of shared memory: No space left on device; enlarge /dev/shm"))
      << outcome.err;
  const size_t first = outcome.err.find("of shared memory: ");
  EXPECT_EQ(outcome.err.find("of shared memory: ", first + 1), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.Says("so they exchange by messages")) << outcome.err;
}

// What the environment says counts where the configuration says nothing.
TEST_F(Cores, ThreadsAreLimitedByTheEnvironment) {
  const Arguments command = Pretrain("run", {"train.steps=3", "train.threads=0"});
  const Outcome limited = Run(command, {.environment = {"OMP_NUM_THREADS=1"}});
  EXPECT_TRUE(limited.Says("1 rank on 1 host, 1 thread each")) << limited.err;
  const Outcome free = Run(Pretrain("free", {"train.steps=3", "train.threads=0"}));
  EXPECT_FALSE(free.Says("1 thread each")) << free.err;
}

}  // namespace
}  // namespace syntra
