// SPDX-License-Identifier: Apache-2.0
#include "run/watchdog.h"

#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"
#include "tests/base/waiting.h"
#include "tests/run/child.h"

namespace syntra {

// Not in the unnamed namespace: its name must be in the stack.
__attribute__((noinline)) void StuckInTheReduction() {
  for (int i = 0; i < 10 * kHangSeconds; ++i) SleepSeconds(0.1);
}

namespace {

void RedirectStderr(const Path& path) {
  dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
}

WatchdogOptions Short(double seconds = 1) {
  return {.limits = {.init = seconds,
                     .prepare = seconds,
                     .load = seconds,
                     .step = seconds,
                     .first_steps = seconds,
                     .evaluation = seconds,
                     .compare = seconds,
                     .save = seconds,
                     .answer = seconds,
                     .between = seconds,
                     .end = seconds,
                     .gather = 0.3}};
}

TEST(Watchdog, NamesPhaseAndStackAndExits7) {
  const Path directory = ScratchDirectory("watchdog");
  const double start = MonotonicSeconds();
  Child child([&](const auto&) {
    WatchdogOptions options = Short();
    options.limits.gather = 3;  // a sanitizer's own thread lets it wait in vain for a stack
    Watchdog watchdog(options);
    watchdog.ReportTo(directory, 0, {"node1"});
    const Watchdog::Phase step(watchdog, RunPhase::kStep, 1234);
    watchdog.Activity("all-reduce");
    std::thread other([] { StuckInTheReduction(); });
    other.join();
    return 0;
  });
  EXPECT_EQ(child.Wait(), 7);
  EXPECT_GT(MonotonicSeconds() - start, 0.9);
  const std::string log = ReadWholeFile(directory / "rank-0000.log");
  EXPECT_NE(log.find("rank 0 "), std::string::npos) << log;
  EXPECT_GE(ReportedSeconds(log, "hangs in step 1234: all-reduce"), 1) << log;
  EXPECT_NE(log.find("StuckInTheReduction"), std::string::npos) << log;
}

// With a progress line on the screen.
TEST(Watchdog, TheReportBeginsALineOfItsOwn) {
  const Path directory = ScratchDirectory("watchdog-line");
  for (const bool has_log : {false, true}) {
    Child child([&](const auto&) {
      RedirectStderr(directory / "stderr");
      Watchdog watchdog(Short(0.2));
      if (has_log) watchdog.ReportTo(directory, 0, {"node1"});
      StderrLine().Show("ETA 3h12m  step 3/100");
      SleepSeconds(kHangSeconds);
      return 0;
    });
    EXPECT_EQ(child.Wait(), 7);
    const std::string text = ReadWholeFile(directory / "stderr");
    EXPECT_NE(text.find("step 3/100\nwatchdog: rank 0 "), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with('\n')) << text;
  }
}

// The thread that draws may hang in the terminal, as after ^S, and so would the report.
TEST(Watchdog, ATerminalThatTakesNothingKeepsNobodyAlive) {
  const Path directory = ScratchDirectory("watchdog-terminal");
  Child child([&](const auto&) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) != 0) return 1;
    while (write(ends[1], "xxxxxxxx", 8) > 0) continue;
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    Watchdog watchdog(Short(0.2));
    watchdog.ReportTo(directory, 0, {"node1", "node1"});
    StderrLine().Show("ETA 3h12m");
    return 0;
  });
  EXPECT_EQ(child.Wait(), 7);
  const std::string log = ReadWholeFile(directory / "rank-0000.log");
  EXPECT_NE(log.find("watchdog: rank 0 "), std::string::npos) << log;
  EXPECT_NE(log.find("no report from rank 1"), std::string::npos) << log;
}

TEST(Watchdog, EveryPhaseIsWatched) {
  const std::pair<RunPhase, const char*> phases[] = {
      {RunPhase::kInit, "hangs in init for"},
      {RunPhase::kPrepare, "hangs in prepare for"},
      {RunPhase::kLoad, "hangs in load for"},
      {RunPhase::kStep, "hangs in step 7 for"},
      {RunPhase::kEvaluation, "hangs in evaluation at step 7 for"},
      {RunPhase::kCompare, "hangs in compare for"},
      {RunPhase::kSave, "hangs in save at step 7 for"},
      {RunPhase::kAnswer, "hangs in answer for"},
      {RunPhase::kEnd, "hangs in end for"}};
  std::vector<std::unique_ptr<Child>> children;
  std::vector<Path> directories;
  for (const auto& [phase, text] : phases) {
    directories.push_back(ScratchDirectory(fmt::format("watchdog-phase-{}", directories.size())));
    children.push_back(std::make_unique<Child>([&, phase = phase](const auto&) {
      Watchdog watchdog(Short(0.2));
      watchdog.ReportTo(directories.back(), 0, {"node1"});
      const Watchdog::Phase outer(watchdog, RunPhase::kStep, 1);
      const Watchdog::Phase inner(watchdog, phase, 7);
      SleepSeconds(kHangSeconds);
      return 0;
    }));
  }
  for (size_t i = 0; i < children.size(); ++i) {
    EXPECT_EQ(children[i]->Wait(), 7) << phases[i].second;
    const std::string log = ReadWholeFile(directories[i] / "rank-0000.log");
    EXPECT_NE(log.find(phases[i].second), std::string::npos) << log;
  }
}

// Code outside of all phases is watched too.
TEST(Watchdog, NoTimeIsUnwatched) {
  for (const bool after_a_phase : {false, true}) {
    const Path directory = ScratchDirectory("watchdog-no-phase");
    Child child([&](const auto&) {
      Watchdog watchdog(Short(0.2));
      watchdog.ReportTo(directory, 0, {"node1"});
      if (after_a_phase) const Watchdog::Phase prepare(watchdog, RunPhase::kPrepare);
      watchdog.Activity("doing nothing");
      SleepSeconds(kHangSeconds);
      return 0;
    });
    EXPECT_EQ(child.Wait(), 7);
    const char* text = after_a_phase ? "hangs in the time between phases: doing nothing for"
                                     : "hangs in init: doing nothing for";
    const std::string log = ReadWholeFile(directory / "rank-0000.log");
    EXPECT_NE(log.find(text), std::string::npos) << log;
  }
}

// Pieces far below the limit, which is exceeded by their sum.
TEST(Watchdog, WorkingRunsAreLeftAlone) {
  Watchdog watchdog(Short(1));
  SleepSeconds(0.1);
  {
    const Watchdog::Phase prepare(watchdog, RunPhase::kPrepare);
    for (int i = 0; i < 12; ++i) {
      SleepSeconds(0.1);
      watchdog.Alive();
    }
  }
  for (int i = 0; i < 12; ++i) {
    const Watchdog::Phase step(watchdog, RunPhase::kStep, i);
    SleepSeconds(0.1);
  }
}

// ^Z, or a scheduler that lets jobs take turns.
TEST(Watchdog, SuspendedTimeDoesNotCount) {
  Child child([&](const auto& ready) {
    Watchdog watchdog(Short());
    const Watchdog::Phase step(watchdog, RunPhase::kStep);
    ready();
    SleepSeconds(0.4);
    return 0;
  });
  child.Signal(SIGSTOP);
  SleepSeconds(1.5);
  child.Signal(SIGCONT);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Watchdog, StepsAndBatchesAreMeasuredByTheirOwnMedians) {
  constexpr double kUsual = 0.06, kOne = 0.6;
  Watchdog watchdog({.limits = {.step = 1, .first_steps = 50, .evaluation = 1}});
  for (const double seconds : {kUsual, kUsual, kOne, kUsual, kUsual}) {
    EXPECT_GE(watchdog.Allowed(RunPhase::kStep), 1);
    const Watchdog::Phase step(watchdog, RunPhase::kStep, 1);
    SleepSeconds(seconds);
  }
  EXPECT_GE(watchdog.Allowed(RunPhase::kStep), 20 * kUsual);
  EXPECT_LT(watchdog.Allowed(RunPhase::kStep), 20 * kOne);
  // Nothing is known of evaluations yet.
  EXPECT_EQ(watchdog.Allowed(RunPhase::kEvaluation), 50);
  for (int i = 0; i < 3; ++i) {
    Watchdog::Phase before(watchdog, RunPhase::kEvaluation, 1);
    before.DoNotMeasure();
  }
  EXPECT_EQ(watchdog.Allowed(RunPhase::kEvaluation), 50);
  for (int i = 0; i < 3; ++i) const Watchdog::Phase batch(watchdog, RunPhase::kEvaluation, 1);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kEvaluation), 1);
}

TEST(Watchdog, LimitsFollowWhatIsKnown) {
  Watchdog watchdog({});
  EXPECT_EQ(watchdog.Allowed(RunPhase::kInit), 120);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kSave), 300);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kSave, 1e9), 400);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kLoad, 1e9), 700);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kStep), 1800);
  watchdog.ExpectStep(NAN);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kStep), 1800);
  watchdog.ExpectStep(2);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kStep), 500);
  watchdog.ExpectStep(1000);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kStep), 1800);
}

TEST(Watchdog, TheEnvironmentSetsLimits) {
  Child child([](const auto&) {
    setenv("SYNTRA_WATCHDOG", "save=5,first_steps=7.5", 1);
    Watchdog watchdog({});
    const bool right = watchdog.Allowed(RunPhase::kSave) == 5 &&
                       watchdog.Allowed(RunPhase::kStep) == 60 &&
                       watchdog.Allowed(RunPhase::kInit) == 120;
    return right ? 0 : 1;
  });
  EXPECT_EQ(child.Wait(), 0);
  const std::string misspelt = ErrorOf([] { LimitsFrom("saves=5", {}); }, ExitCode::kConfig);
  EXPECT_NE(misspelt.find("one of the names init, prepare, "), std::string::npos) << misspelt;
  EXPECT_NE(misspelt.find("; did you mean \"save\"?"), std::string::npos) << misspelt;
  for (const char* wrong : {"save", "save=", "save=x", "save=0", "save=-1", "saves=5", "save=1,"}) {
    Child refused([&](const auto&) {
      setenv("SYNTRA_WATCHDOG", wrong, 1);
      try {
        Watchdog watchdog({});
      } catch (const Error& error) {
        return static_cast<int>(error.code());
      }
      return 0;
    });
    EXPECT_EQ(refused.Wait(), static_cast<int>(ExitCode::kConfig)) << wrong;
  }
}

// Two ranks wait for a third that is frozen.
TEST(Watchdog, RanksWithoutAReportAreNamed) {
  const Path directory = ScratchDirectory("watchdog-ranks");
  std::vector<std::unique_ptr<Child>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(std::make_unique<Child>([&, rank](const auto& ready) {
      Watchdog watchdog(Short(2));
      watchdog.ReportTo(directory, rank, {"node1", "node2", "node2"});
      const Watchdog::Phase step(watchdog, RunPhase::kStep, 5);
      ready();
      SleepSeconds(kHangSeconds);
      return 0;
    }));
  }
  ranks[1]->Signal(SIGSTOP);
  EXPECT_EQ(ranks[0]->Wait(), 7);
  EXPECT_EQ(ranks[2]->Wait(), 7);
  const std::string log = ReadWholeFile(directory / "rank-0000.log");
  EXPECT_NE(log.find("no report from rank 1 on node2: frozen"), std::string::npos) << log;
  // One summary is enough.
  const std::string other = ReadWholeFile(directory / "rank-0002.log");
  EXPECT_EQ(other.find("no report from"), std::string::npos) << other;
  // Its own clock stood still with it: a job that is suspended and goes on is not killed at once.
  SleepSeconds(1);
  ranks[1]->Signal(SIGCONT);
  SleepSeconds(0.3);
  EXPECT_TRUE(ranks[1]->running());
}

// The summary of many ranks fits on a screen.
TEST(Watchdog, ManyReportsAreCounted) {
  const Path directory = ScratchDirectory("watchdog-many");
  constexpr int kRanks = 64, kFrozen = 17;
  for (int rank = 1; rank < kRanks; ++rank) {
    if (rank == kFrozen) continue;
    ReplaceFileDurably(directory / fmt::format("hang-rank-{:04}", rank),
                       fmt::format("rank {} hangs\n", rank));
  }
  Child child([&](const auto&) {
    Watchdog watchdog(Short(0.2));
    watchdog.ReportTo(directory, 0, std::vector<std::string>(kRanks, "node1"));
    SleepSeconds(kHangSeconds);
    return 0;
  });
  EXPECT_EQ(child.Wait(), 7);
  const std::string log = ReadWholeFile(directory / "rank-0000.log");
  EXPECT_NE(log.find("\n  rank 7 hangs\n  and ranks 8-16, 18-63 on node1, see "), log.npos) << log;
  EXPECT_NE(log.find("\n  no report from rank 17 on node1: frozen"), log.npos) << log;
}

// No rank is frozen, and still they wait for each other. Two jobs: one on one host, one on two.
TEST(Watchdog, WhereAllRanksReportTheNetworkIsNamed) {
  const Path one = ScratchDirectory("watchdog-host"), two = ScratchDirectory("watchdog-hosts");
  std::vector<std::unique_ptr<Child>> ranks;
  for (const Path& directory : {one, two}) {
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(std::make_unique<Child>([&, rank](const auto& ready) {
        WatchdogOptions options = Short();
        options.limits.gather = 2;
        Watchdog watchdog(options);
        watchdog.ReportTo(directory, rank, {"node1", directory == one ? "node1" : "node2"});
        const Watchdog::Phase step(watchdog, RunPhase::kStep, 5);
        ready();
        SleepSeconds(kHangSeconds);
        return 0;
      }));
    }
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->Wait(), 7);
  for (const Path& directory : {one, two}) {
    const std::string log = ReadWholeFile(directory / "rank-0000.log");
    EXPECT_EQ(log.find("no report"), log.npos) << log;
    EXPECT_EQ(log.find("look at the network between the hosts first") != log.npos, directory == two)
        << log;
  }
}

// Rank 0 has failed and never comes to its end; the other waits as long as it was asked to. Both
// end with the code of the error.
TEST(Watchdog, ARankThatHasFailedIsWaitedFor) {
  constexpr double kAsked = 2;
  const Path directory = ScratchDirectory("watchdog-ending");
  Child failed([&](const auto& ready) {
    WatchdogOptions options = Short();
    options.limits.save = 4;
    Watchdog watchdog(options);
    watchdog.ReportTo(directory, 0, {"node1", "node1"});
    watchdog.EndsWith(ExitCode::kResources, kAsked);
    ready();
    const Watchdog::Phase save(watchdog, RunPhase::kSave, 5);
    SleepSeconds(kHangSeconds);
    return 0;
  });
  const auto other = [&](int rank) {
    return std::make_unique<Child>([&, rank](const auto&) {
      WatchdogOptions options = Short(0.2);
      options.limits.save = kAsked;
      Watchdog watchdog(options);
      watchdog.ReportTo(directory, rank, {"node1", "node1"});
      const Watchdog::Phase step(watchdog, RunPhase::kStep, 5);
      SleepSeconds(kHangSeconds);
      return 0;
    });
  };
  const auto waited = [&] {
    return ReportedSeconds(ReadWholeFile(directory / "rank-0001.log"), "hangs in step 5");
  };
  EXPECT_EQ(other(1)->Wait(), 4);
  EXPECT_GE(waited(), kAsked);
  EXPECT_EQ(failed.Wait(), 4);
  // A full disk may have left no more than the file's name: then it is as long as a save may take.
  ReplaceFileDurably(directory / "ending", "");
  std::filesystem::remove(directory / "rank-0001.log");
  EXPECT_EQ(other(1)->Wait(), 7);
  EXPECT_GE(waited(), kAsked);
  // The next run begins without it.
  ReplaceFileDurably(directory / "ending", "4 2");
  EXPECT_EQ(other(0)->Wait(), 7);
  EXPECT_FALSE(Exists(directory / "ending"));
}

// Before there is a run directory, ranks of a machine report in a directory of the job.
TEST(Watchdog, RanksThatNeverJoinAreNamed) {
  const Path directory = ScratchDirectory("watchdog-join");
  Child child([&](const auto&) {
    RedirectStderr(directory / "stderr");
    WatchdogOptions options = Short(0.2);
    options.rank = 1;
    options.ranks = 3;
    options.job_directory = directory;
    Watchdog watchdog(options);
    watchdog.Activity("joining the other ranks");
    SleepSeconds(kHangSeconds);
    return 0;
  });
  EXPECT_EQ(child.Wait(), 7);
  const std::string text = ReadWholeFile(directory / "stderr");
  EXPECT_NE(text.find("hangs in init: joining the other ranks for"), std::string::npos) << text;
  EXPECT_NE(text.find("no report from ranks 0, 2: frozen, lost, or on another machine"),
            std::string::npos)
      << text;
}

// A rank wakes up and learns its run directory while its report waits for those of the others.
TEST(Watchdog, AReportStaysWhereItBegan) {
  const Path job = ScratchDirectory("watchdog-job"), run = ScratchDirectory("watchdog-run");
  Child child([&](const auto&) {
    RedirectStderr(job / "stderr");
    WatchdogOptions options = Short(0.2);
    options.ranks = 2;
    options.job_directory = job;
    options.limits.gather = 2;
    Watchdog watchdog(options);
    while (!Exists(job / "hang-rank-0000")) SleepSeconds(0.01);
    watchdog.ReportTo(run, 0, {"node1", "node1"});
    SleepSeconds(kHangSeconds);
    return 0;
  });
  EXPECT_EQ(child.Wait(), 7);
  const std::string text = ReadWholeFile(job / "stderr");
  EXPECT_NE(text.find("no report from rank 1: frozen, lost, or on another machine"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace syntra
