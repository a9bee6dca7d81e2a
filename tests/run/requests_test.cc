// SPDX-License-Identifier: Apache-2.0
#include "run/requests.h"

#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <thread>

#include "run/signals.h"
#include "tests/base/scratch.h"
#include "tests/run/child.h"

namespace syntra {
namespace {

// Two ranks of a run, as far as requests go; the second takes no files.
struct Ranks {
  explicit Ranks(const char* name, double seconds = 0)
      : directory(ScratchDirectory(name)),
        first({directory, directory, true, seconds}),
        second({directory, directory, false, seconds}) {}
  Path directory;
  Requests first, second;
};

TEST(Requests, FilesReachTheRankThatTakesThem) {
  Ranks ranks("requests-files");
  ReplaceFileDurably(ranks.directory / "SAVE", "");
  EXPECT_FALSE(ranks.second.Stop());
  EXPECT_FALSE(ranks.second.TakeSave());
  // It waits until it is taken.
  EXPECT_FALSE(ranks.first.Stop());
  EXPECT_TRUE(ranks.first.TakeSave());
  EXPECT_FALSE(ranks.first.TakeSave());
  ReplaceFileDurably(ranks.directory / "STOP", "");
  EXPECT_FALSE(ranks.second.Stop());
  EXPECT_TRUE(ranks.first.Stop());
  EXPECT_TRUE(ranks.first.Stop());
}

TEST(Requests, OneRankTellsTheOthers) {
  Ranks ranks("requests-others");
  EXPECT_FALSE(ranks.first.StopOfAnyRank());
  EXPECT_FALSE(ranks.second.StopOfAnyRank());
  ReplaceFileDurably(ranks.directory / "STOP", "");
  EXPECT_TRUE(ranks.first.StopOfAnyRank());
  EXPECT_TRUE(ranks.second.StopOfAnyRank());
  // That another rank stops is no request to this one.
  EXPECT_FALSE(ranks.second.Stop());
  // Requests to an earlier run do not apply to this one.
  EXPECT_FALSE(Requests({ranks.directory, ranks.directory, true}).StopOfAnyRank());
  EXPECT_FALSE(ranks.second.StopOfAnyRank());
}

TEST(Requests, TimeLimit) {
  EXPECT_TRUE(Ranks("requests-over", 1e-9).second.Stop());
  EXPECT_FALSE(Ranks("requests-time", 1e9).second.Stop());
}

// What counts as no progress of a run.
TEST(Requests, OnlyATimeLimitStopsByTime) {
  Ranks asked("requests-asked", 1e9), over("requests-out-of-time", 1e-9);
  ReplaceFileDurably(asked.directory / "STOP", "");
  EXPECT_TRUE(asked.first.Stop());
  EXPECT_FALSE(asked.first.stopped_by_time());
  // Nor where the time is over while it stops.
  Ranks slow("requests-slow", 0.05);
  ReplaceFileDurably(slow.directory / "STOP", "");
  EXPECT_TRUE(slow.first.Stop());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(slow.first.Stop());
  EXPECT_FALSE(slow.first.stopped_by_time());
  Requests in_job({over.directory, over.directory, false, 0, /*job_seconds=*/0});
  for (Requests* requests : {&over.second, &in_job}) {
    EXPECT_FALSE(requests->stopped_by_time());
    EXPECT_TRUE(requests->Stop());
    EXPECT_TRUE(requests->stopped_by_time());
  }
}

TEST(Requests, TheEndOfTheJobIsSlurms) {
  unsetenv("SLURM_JOB_END_TIME");
  EXPECT_TRUE(std::isinf(SecondsLeftInJob()));
  setenv("SLURM_JOB_END_TIME", "NONE", 1);
  EXPECT_TRUE(std::isinf(SecondsLeftInJob()));
  setenv("SLURM_JOB_END_TIME", "-5", 1);
  EXPECT_TRUE(std::isinf(SecondsLeftInJob()));
  setenv("SLURM_JOB_END_TIME", "1", 1);
  EXPECT_EQ(SecondsLeftInJob(), 0);
  setenv("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + 100000).c_str(), 1);
  EXPECT_NEAR(SecondsLeftInJob(), 100000, 10000);
}

TEST(Requests, StopsBeforeTheJobEnds) {
  const Path directory = ScratchDirectory("requests-job");
  const auto stops = [&](double job_seconds) {
    return Requests({directory, directory, true, 0, job_seconds}).Stop();
  };
  EXPECT_FALSE(stops(1e6));
  EXPECT_TRUE(stops(0));
  EXPECT_TRUE(stops(-5));
}

TEST(Requests, TimeIsKeptForTwoStepsAndSaves) {
  EXPECT_EQ(SecondsKeptForSaving(86400, 0), 30);
  EXPECT_EQ(SecondsKeptForSaving(86400, 200), 430);
  EXPECT_EQ(SecondsKeptForSaving(300, 200), 150);
  EXPECT_EQ(SecondsKeptForSaving(-1, 200), 0);
  EXPECT_EQ(SecondsKeptForSaving(std::numeric_limits<double>::infinity(), 200), 430);
}

TEST(Requests, Signals) {
  Child child([](const auto&) {
    InstallSignalHandlers();
    Ranks ranks("requests-signals");
    raise(SIGUSR2);
    if (ranks.first.Stop() || !ranks.first.TakeSave() || ranks.first.TakeSave()) return 1;
    raise(SIGTERM);
    return ranks.second.StopOfAnyRank() && ranks.first.StopOfAnyRank() ? 0 : 2;
  });
  EXPECT_EQ(child.Wait(), 0);
}

}  // namespace
}  // namespace syntra
