#include "train/watchdog.h"

#include "base/error.h"
#include "tests/train/child.h"

namespace syntra {

// Not in the unnamed namespace: its name must be in the stack.
__attribute__((noinline)) void StuckInTheReduction() {
  for (int i = 0; i < 300; ++i) SleepSeconds(0.1);
}

namespace {

WatchdogOptions Short(const Path& directory) {
  return {.directory = directory,
          .init = 1,
          .prepare = 1,
          .first_steps = 1,
          .step = 1,
          .save = 1,
          .evaluation = 1,
          .gather = 0.3};
}

TEST(Watchdog, NamesPhaseAndStackAndExits7) {
  const Path directory = ScratchDirectory("watchdog");
  const auto start = std::chrono::steady_clock::now();
  Child child([&](const auto&) {
    Watchdog watchdog(Short(directory));
    const Watchdog::Phase step(watchdog, RunPhase::kStep, 1234);
    watchdog.Activity("all-reduce");
    std::thread other([] { StuckInTheReduction(); });
    other.join();
    return 0;
  });
  EXPECT_EQ(child.Wait(), 7);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_GT(elapsed.count(), 0.9);
  EXPECT_LT(elapsed.count(), 6);
  const std::string log = ReadWholeFile(directory / "rank-0000.log");
  EXPECT_NE(log.find("rank 0 "), std::string::npos) << log;
  EXPECT_NE(log.find("hangs in step 1234: all-reduce for 1 s"), std::string::npos) << log;
  EXPECT_NE(log.find("StuckInTheReduction"), std::string::npos) << log;
}

TEST(Watchdog, EveryPhaseIsWatched) {
  const std::pair<RunPhase, const char*> phases[] = {
      {RunPhase::kInit, "hangs in init"},
      {RunPhase::kPrepare, "hangs in prepare"},
      {RunPhase::kSave, "hangs in save"},
      {RunPhase::kEvaluation, "hangs in evaluation"}};
  for (const auto& [phase, text] : phases) {
    const Path directory = ScratchDirectory("watchdog-phase");
    Child child([&, phase = phase](const auto&) {
      WatchdogOptions options = Short(directory);
      options.init = options.prepare = options.save = options.evaluation = 0.2;
      Watchdog watchdog(options);
      const Watchdog::Phase outer(watchdog, RunPhase::kStep, 1);
      const Watchdog::Phase inner(watchdog, phase);
      SleepSeconds(20);
      return 0;
    });
    EXPECT_EQ(child.Wait(), 7);
    EXPECT_NE(ReadWholeFile(directory / "rank-0000.log").find(text), std::string::npos) << text;
  }
}

TEST(Watchdog, WorkingRunsAreLeftAlone) {
  WatchdogOptions options = Short({});
  options.init = options.prepare = options.first_steps = options.step = 0.3;
  Watchdog watchdog(options);
  {
    const Watchdog::Phase init(watchdog, RunPhase::kInit);
    SleepSeconds(0.1);
  }
  {
    const Watchdog::Phase prepare(watchdog, RunPhase::kPrepare);
    for (int i = 0; i < 6; ++i) {
      SleepSeconds(0.1);
      watchdog.Alive();
    }
  }
  for (int i = 0; i < 6; ++i) {
    const Watchdog::Phase step(watchdog, RunPhase::kStep, i);
    SleepSeconds(0.1);
  }
  // No phase, no deadline.
  SleepSeconds(0.6);
}

TEST(Watchdog, StepsAreMeasuredByTheirMedian) {
  WatchdogOptions options;
  options.step = 0.1;
  options.first_steps = 50;
  Watchdog watchdog(options);
  for (const double seconds : {0.01, 0.01, 0.3, 0.01, 0.01}) {
    EXPECT_GE(watchdog.Allowed(RunPhase::kStep), 0.1);
    const Watchdog::Phase step(watchdog, RunPhase::kStep, 1);
    SleepSeconds(seconds);
  }
  EXPECT_GE(watchdog.Allowed(RunPhase::kStep), 0.2);
  EXPECT_LT(watchdog.Allowed(RunPhase::kStep), 3);
  EXPECT_EQ(watchdog.Allowed(RunPhase::kInit), 60);
}

// Two ranks wait for a third that is frozen.
TEST(Watchdog, RanksWithoutAReportAreNamed) {
  const Path directory = ScratchDirectory("watchdog-ranks");
  std::vector<std::unique_ptr<Child>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(std::make_unique<Child>([&, rank](const auto& ready) {
      WatchdogOptions options = Short(directory);
      options.rank = rank;
      options.ranks = 3;
      Watchdog watchdog(options);
      const Watchdog::Phase step(watchdog, RunPhase::kStep, 5);
      ready();
      SleepSeconds(30);
      return 0;
    }));
  }
  ranks[1]->Signal(SIGSTOP);
  EXPECT_EQ(ranks[0]->Wait(), 7);
  EXPECT_EQ(ranks[2]->Wait(), 7);
  for (const char* name : {"rank-0000.log", "rank-0002.log"}) {
    const std::string log = ReadWholeFile(directory / name);
    EXPECT_NE(log.find("no report from rank 1:"), std::string::npos) << log;
  }
  // Its own clock stood still with it: a job that is suspended and goes on is not killed at once.
  SleepSeconds(1);
  ranks[1]->Signal(SIGCONT);
  SleepSeconds(0.3);
  EXPECT_TRUE(ranks[1]->running());
}

}  // namespace
}  // namespace syntra
