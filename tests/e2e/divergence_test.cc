// SPDX-License-Identifier: Apache-2.0
// Runs that diverge: they go back to a good checkpoint and on with other data, a limited number of
// times, to the bits of a run that was sent there by hand.
#include <signal.h>

#include <random>

#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/read.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

// Batches 9 to 14 have gradients that are not finite. With three such steps at most, the run
// diverges in step 12, goes back to step 5 and goes on with batch 13.
const StartOptions kBadWindow{.environment = {"SYNTRA_FAILPOINT=nan_batch@9-14"}};

class Diverged : public TinyRun {
 protected:
  static Arguments Settings(const Arguments& more = {}) {
    Arguments settings{"train.max_skipped_steps=3", "optimizer.schedule.kind=CONSTANT",
                       "train.reduction=EXACT", "train.micro_batch_size=2"};
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
  }
  std::string Log(const std::string& name) const {
    return ReadWholeFile(Directory(name) / "log/rank-0000.log");
  }
  std::vector<int64_t> SkippedSteps(const std::string& name) const {
    std::vector<int64_t> steps;
    for (const Json& line : Metrics(name)) {
      if (line.value("skipped", 0.0) > 0) steps.push_back(line.at("step"));
    }
    return steps;
  }
};

constexpr char kBack[] = "Going back from step 12 to step 5";

TEST_F(Diverged, GoesBackAndOnWithOtherData) {
  const Outcome outcome = Run(Pretrain("run", Settings()), kBadWindow);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(Log("run").find("4 of the last 100 steps"), std::string::npos);
  const size_t back = Log("run").find(kBack);
  ASSERT_NE(back, std::string::npos) << Log("run");
  // At once, with the rollback: a run that is killed now would otherwise go back once more.
  EXPECT_NE(Log("run").find(StepName(5) + " (", back), std::string::npos) << Log("run");
  // Batches 13 and 14.
  EXPECT_EQ(SkippedSteps("run"), (std::vector<int64_t>{6, 7}));
  // What was undone is not in the metrics, nor among the checkpoints.
  EXPECT_EQ(Metrics("run").size(), 25u);  // 20 steps, evaluations at 0, 5, 10, 15, 20
  EXPECT_EQ(NewestStep("run"), 20);
  const std::string events = ReadWholeFile(Directory("run") / "events.jsonl");
  EXPECT_NE(events.find("\"event\":\"rollback\",\"to\":5"), std::string::npos) << events;

  Train("by-hand", Settings({"train.steps=5"}));
  SetAttribute("by-hand", 5, "rollbacks", "12-5");
  // With batches 9 to 12, too, it would go back by itself.
  Train("by-hand", Settings(), {.environment = {"SYNTRA_FAILPOINT=nan_batch@13-14"}});
  EXPECT_EQ(Trace(Directory("run"), 20), Trace(Directory("by-hand"), 20));
}

// The start's values are finite, and the log-perplexity that they give is not.
TEST_F(Diverged, BeforeThereIsAnEarlierCheckpoint) {
  const Arguments huge = Settings({"optimizer.schedule.rate=1e17", "train.steps=2"});
  EXPECT_EQ(Run(Pretrain("huge", huge)).code, 6);
  ASSERT_GE(NewestStep("huge"), 0);
  Arguments from_huge = Pretrain("run", Settings());
  from_huge.insert(from_huge.end(),
                   {"--init-from", CheckpointPath("huge", NewestStep("huge")).string()});
  const Outcome outcome = Run(from_huge);
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_TRUE(outcome.Says("There is no earlier checkpoint to go back to")) << outcome.err;
}

TEST_F(Diverged, AllRanksGoBackTogether) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("one", Settings(), kBadWindow);
  StartOptions two = kBadWindow;
  two.ranks = 2;
  for (const std::string sharding : {"NONE", "OPTIMIZER_STATE"}) {
    Train(sharding, Settings({"train.compare_replicas_every=1", "train.sharding=" + sharding}),
          two);
    EXPECT_EQ(Trace(Directory(sharding), 20), Trace(Directory("one"), 20)) << sharding;
  }
}

// Killed where the run goes back, and again and again after it: a start finds the checkpoint with
// the rollback or without it, and comes to the same end.
TEST_F(Diverged, KilledAfterwardsItContinuesExactly) {
  Train("straight", Settings(), kBadWindow);
  for (const double delay : {0.0, 0.02, 0.05, 0.1}) {
    RemoveAll(Directory("killed"));
    Program run(scratch_, Pretrain("killed", Settings()), kBadWindow);
    ASSERT_TRUE(
        WaitUntil([&] { return !run.running() || run.Errors().find(kBack) != std::string::npos; }));
    SleepSeconds(delay);
    run.Kill();
    Train("killed", Settings(), kBadWindow);
    EXPECT_EQ(Trace(Directory("killed"), 20), Trace(Directory("straight"), 20)) << delay;
  }
}

// The run diverges in step 12. The checkpoints that stops leave are no places to go back to, and
// those that are due outlive them.
TEST_F(Diverged, WhereItWasStoppedDoesNotMatter) {
  const Arguments settings = Settings({"checkpoint.every=4", "evaluation.every=1"});
  const char* back = "Going back from step 12 to step 8";
  Train("straight", settings, kBadWindow);
  EXPECT_NE(Log("straight").find(back), std::string::npos) << Log("straight");
  for (const int64_t step : {5, 9, 10}) {
    StartOptions stops = kBadWindow;
    stops.environment[0] += fmt::format(",stop_evaluation@{}", step);
    const Outcome outcome = Run(Pretrain("stopped", settings), stops);
    ASSERT_EQ(outcome.code, 75) << outcome.err;
    ASSERT_TRUE(HasCheckpoint("stopped", step));
  }
  EXPECT_TRUE(HasCheckpoint("stopped", 4));
  Train("stopped", settings, kBadWindow);
  EXPECT_NE(Log("stopped").find(back), std::string::npos) << Log("stopped");
  EXPECT_EQ(Trace(Directory("stopped"), 20), Trace(Directory("straight"), 20));
}

TEST_F(Diverged, ALimitedNumberOfTimes) {
  const StartOptions endless{.environment = {"SYNTRA_FAILPOINT=nan_batch@9-1000"}};
  for (const int most : {0, 1, 4}) {
    const std::string name = fmt::format("most-{}", most);
    const Outcome outcome =
        Run(Pretrain(name, Settings({fmt::format("train.max_rollbacks={}", most)})), endless);
    EXPECT_EQ(outcome.code, 6) << outcome.err;
    EXPECT_TRUE(outcome.Says("4 of the last 100 steps")) << outcome.err;
    EXPECT_EQ(outcome.Says(fmt::format("The run has gone back {} (", Counted(most, "time"))),
              most > 0);
    const std::string last = fmt::format("(rollback {} of {})", most, most);
    EXPECT_EQ(Log(name).find(last) != std::string::npos, most > 0) << Log(name);
  }
  // However often it is started.
  const Outcome again = Run(Pretrain("most-1", Settings()), endless);
  EXPECT_EQ(again.code, 6) << again.err;
  EXPECT_TRUE(again.Says("The run has gone back 1 time (")) << again.err;
}

// Where no checkpoint from before the first bad step is left, the oldest one serves.
TEST_F(Diverged, GoesBackToTheOldestIfAllAreLate) {
  const StartOptions now_and_then{
      .environment = {"SYNTRA_FAILPOINT=nan_batch@3,nan_batch@8,nan_batch@11,nan_batch@13"}};
  const Outcome outcome = Run(Pretrain("run", Settings({"checkpoint.every=4"})), now_and_then);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(Log("run").find("Going back from step 13 to step 8"), std::string::npos) << Log("run");
}

// What is usual is part of a checkpoint. Here it is far below the losses that the run has.
TEST_F(Diverged, SpikesOfTheLossAreLoggedOrCounted) {
  for (const std::string name : {"LOG", "COUNT"}) {
    Train(name, Settings({"train.steps=10"}));
    const Checkpoint checkpoint(CheckpointPath(name, 10));
    const std::string losses = checkpoint.info().attributes.at("recent_losses");
    EXPECT_EQ(Split(losses, ' ').size(), 10u) << losses;
    std::string usual = "0.5";
    for (int i = 1; i < 40; ++i) usual += " 0.5";
    SetAttribute(name, 10, "recent_losses", usual);
    const Outcome outcome = Run(Pretrain(name, Settings({"train.loss_spikes=" + name})));
    EXPECT_NE(Log(name).find("warning step 11: the loss of "), std::string::npos) << Log(name);
    const bool goes_back =
        Log(name).find("Going back from step 14 to step 10") != std::string::npos;
    EXPECT_EQ(goes_back, name == "COUNT") << Log(name);
    // Whatever data it goes on with, its losses stand out.
    EXPECT_EQ(outcome.code, name == "COUNT" ? 6 : 0) << outcome.err;
  }
}

// Documents of 30 words of two letters, the first of which is one of the first `letters` of the
// alphabet, and the second `ending`.
std::string Documents(int count, int letters, char ending, uint32_t seed) {
  std::mt19937 random(seed);
  std::string lines;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (int j = 0; j < 30; ++j) {
      text += fmt::format(" {}{}", static_cast<char>('a' + random() % letters), ending);
    }
    lines += fmt::format("{{\"text\": \"{}\"}}\n", text.substr(1));
  }
  return lines;
}

// In the middle of a corpus of eight words there are a few documents of others. The losses of the
// steps that meet them stand out by 9 deviations or more, those of others by less than 4. The
// third such step is one too many.
TEST_F(Diverged, TextThatStandsOutIsPassedOver) {
  ReplaceFileDurably(training_, Documents(1000, 8, 'a', 1) + Documents(16, 26, 'c', 2) +
                                    Documents(1000, 8, 'a', 3));
  const Arguments settings{"train.steps=195",
                           "train.batch_size=2",
                           "train.micro_batch_size=2",
                           "train.reduction=EXACT",
                           "train.loss_spikes=COUNT",
                           "train.max_skipped_steps=2",
                           "optimizer.schedule.kind=CONSTANT",
                           "optimizer.schedule.rate=0.005",
                           "model.dropout=0",
                           "model.attention_dropout=0",
                           "checkpoint.every=60",
                           "evaluation.every=0"};
  Train("run", settings);
  const std::string log = Log("run");
  for (const int step : {171, 174, 190}) {
    EXPECT_NE(log.find(fmt::format("step {}: the loss of ", step)), std::string::npos) << log;
  }
  EXPECT_NE(log.find("Going back from step 190 to step 120"), std::string::npos) << log;
  EXPECT_EQ(NewestStep("run"), 195);
  // The steps that were done again have read other text.
  int64_t step = 0;
  for (const Json& line : Metrics("run")) {
    if (!line.contains("loss")) continue;
    EXPECT_EQ(line.at("step"), ++step);
    if (step == 171 || step == 174 || step == 190) {
      EXPECT_LT(line.at("loss").get<double>(), 2.5) << step;
    }
  }
  EXPECT_EQ(step, 195);

  Arguments without = settings;
  without.emplace_back("train.max_rollbacks=0");
  const Outcome outcome = Run(Pretrain("without", without));
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_TRUE(outcome.Says("3 of the last 100 steps")) << outcome.err;
}

}  // namespace
}  // namespace syntra
