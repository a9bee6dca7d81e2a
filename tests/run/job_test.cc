// SPDX-License-Identifier: Apache-2.0
// Jobs of two ranks under mpirun that get signals, are frozen, killed or started twice.
#include <fcntl.h>

#include "base/error.h"
#include "base/text.h"
#include "run/run_lock.h"
#include "tests/base/scratch.h"
#include "tests/base/waiting.h"
#include "tests/run/child.h"

namespace syntra {
namespace {

class Job : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(SYNTRA_MPIRUN).empty()) GTEST_SKIP() << "mpirun is not installed";
    directory_ = ScratchDirectory(std::string("job-") +
                                  testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  std::unique_ptr<Child> Start(int64_t steps) {
    return std::make_unique<Child>([&](const auto&) {
      setenv("OMP_NUM_THREADS", "1", 1);
      const std::string count = std::to_string(steps);
      const int output = open((directory_ / "output").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      dup2(output, STDOUT_FILENO);
      dup2(output, STDERR_FILENO);
      execl(SYNTRA_MPIRUN, "mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
            "-n", "2", SYNTRA_JOB_RANK, directory_.c_str(), count.c_str(), nullptr);
      return 127;
    });
  }

  // The process ids of both ranks, once they run.
  std::vector<pid_t> WaitForRanks() {
    std::vector<pid_t> ids;
    EXPECT_TRUE(WaitUntil([&] {
      const Path path = directory_ / fmt::format("pid-{}", ids.size());
      int64_t id = 0;
      if (std::filesystem::exists(path) && ParseInt64(ReadWholeFile(path), &id)) {
        ids.push_back(static_cast<pid_t>(id));
      }
      return ids.size() == 2;
    })) << ReadWholeFile(directory_ / "output");
    ids.resize(2, getpid());
    return ids;
  }

  // Of the program; its names hold the process that made them.
  static void ExpectNoSharedMemory(const std::vector<pid_t>& ranks) {
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      for (const pid_t rank : ranks) {
        EXPECT_FALSE(entry.path().filename().string().starts_with(fmt::format("syntra-{}-", rank)))
            << entry.path();
      }
    }
  }

  std::string Output() { return ReadWholeFile(directory_ / "output"); }

  Path directory_;
};

TEST_F(Job, EndsByItself) { EXPECT_EQ(Start(20)->Wait(), 0) << Output(); }

TEST_F(Job, SignalToMpirunStopsAllRanksAtOneStep) {
  for (const bool to_one_rank : {false, true}) {
    std::filesystem::remove(directory_ / "pid-0");
    std::filesystem::remove(directory_ / "pid-1");
    const auto job = Start(100000);
    const auto ranks = WaitForRanks();
    SleepSeconds(0.2);
    to_one_rank ? static_cast<void>(kill(ranks[1], SIGTERM)) : job->Signal(SIGUSR1);
    EXPECT_EQ(job->Wait(), static_cast<int>(ExitCode::kRequeue)) << Output();
    EXPECT_EQ(ReadWholeFile(directory_ / "metrics-0.jsonl"),
              ReadWholeFile(directory_ / "metrics-1.jsonl"));
  }
}

TEST_F(Job, FrozenRankIsNamed) {
  const auto job = Start(100000);
  const auto ranks = WaitForRanks();
  SleepSeconds(0.2);
  kill(ranks[1], SIGSTOP);
  EXPECT_EQ(job->Wait(), static_cast<int>(ExitCode::kPeerLost)) << Output();
  EXPECT_GE(ReportedSeconds(Output(), ": all-reduce"), 2) << Output();
  EXPECT_NE(Output().find(fmt::format("no report from rank 1 on {}:", HostName())),
            std::string::npos)
      << Output();
  // It waits in whichever all-reduce the frozen rank did not reach.
  EXPECT_NE(ReadWholeFile(directory_ / "rank-0000.log").find("AllReduce"), std::string::npos);
}

TEST_F(Job, KilledRankEndsTheJob) {
  const auto job = Start(100000);
  const auto ranks = WaitForRanks();
  kill(ranks[1], SIGKILL);
  // Not for mpirun, which may wait for itself for ever (e2e/program.h).
  for (const pid_t rank : ranks) EXPECT_TRUE(WaitUntil([&] { return !Alive(rank); }));
  ExpectNoSharedMemory(ranks);
  // Rank 0 held the lock and is gone.
  const RunLock lock(directory_);
}

TEST_F(Job, KilledLauncherLeavesNoRank) {
  const auto job = Start(100000);
  const auto ranks = WaitForRanks();
  job->Signal(SIGKILL);
  job->Wait();
  ExpectNoSharedMemory(ranks);
  for (const pid_t rank : ranks) EXPECT_TRUE(WaitUntil([&] { return !Alive(rank); }));
  const RunLock lock(directory_);
  for (int rank = 0; rank < 2; ++rank) {
    const Path log = directory_ / fmt::format("metrics-{}.jsonl", rank);
    const auto size = std::filesystem::file_size(log);
    SleepSeconds(0.2);
    EXPECT_EQ(std::filesystem::file_size(log), size) << "rank " << rank << " still writes";
  }
}

TEST_F(Job, SecondJobIsLockedOut) {
  const auto job = Start(100000);
  const auto ranks = WaitForRanks();
  EXPECT_EQ(Start(10)->Wait(), static_cast<int>(ExitCode::kLocked)) << Output();
  EXPECT_NE(Output().find(fmt::format("is in use by process {} on", ranks[0])), std::string::npos);
  job->Signal(SIGUSR1);
  EXPECT_EQ(job->Wait(), static_cast<int>(ExitCode::kRequeue)) << Output();
}

}  // namespace
}  // namespace syntra
