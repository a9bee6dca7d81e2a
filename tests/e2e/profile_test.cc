// SPDX-License-Identifier: Apache-2.0
// train.profile: what the timelines of steps hold.
#include <gmock/gmock.h>

#include "tests/e2e/profile.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using testing::HasSubstr;

class Profile : public TinyRun {
 protected:
  std::vector<ProfileEvent> Events(const std::string& run, int rank = 0) const {
    return ProfileEvents(Directory(run), rank);
  }
};

using Steps = std::vector<int64_t>;
constexpr const char* kProfile = "train.profile={ first_step: 2 steps: 3 }";
const Arguments kSteps{"train.steps=6", "train.micro_batch_size=4", "checkpoint.every=3",
                       "evaluation.every=3"};

Arguments With(Arguments settings, const std::string& more) {
  settings.push_back(more);
  return settings;
}

TEST_F(Profile, HasTheStepsPhasesAndOpsOfItsWindow) {
  // On a busy machine the last step may be over before the threads beside it have begun.
  Train("run", With(kSteps, kProfile), {.environment = {"SYNTRA_FAILPOINT=slow_rank@4"}});
  const std::vector<ProfileEvent> events = Events("run");
  EXPECT_EQ(StepsOf(events, kTrainingLane, "step"), (Steps{2, 3, 4}));
  EXPECT_EQ(StepsOf(events, kTrainingLane, "data"), (Steps{2, 3, 4}));
  EXPECT_EQ(StepsOf(events, kTrainingLane, "evaluation"), Steps{3});
  EXPECT_EQ(StepsOf(events, kTrainingLane, "save"), Steps{3});
  EXPECT_EQ(StepsOf(events, kCheckpointLane, "write checkpoint"), Steps{3});
  // A step's batches are made during the one before.
  EXPECT_EQ(StepsOf(events, kDataLane, "make batches"), (Steps{3, 4, 5}));
  // Two micro-batches a step.
  EXPECT_EQ(CountOf(events, "forward"), 6);
  EXPECT_EQ(CountOf(events, "backward"), 6);
  EXPECT_EQ(CountOf(events, "reduce"), 3);
  EXPECT_EQ(CountOf(events, "optimizer"), 3);
  std::map<std::string, int> ops;  // by phase
  for (const ProfileEvent& event : events) {
    if (!event.facts.contains("instruction")) continue;
    ++ops[event.around];
    EXPECT_NE(event.facts.at("outputs"), "");
    if (event.name != "matmul") continue;
    EXPECT_GT(event.facts.at("flops"), 0);
    EXPECT_GT(event.facts.at("bytes"), 0);
    EXPECT_THAT(event.facts.at("inputs"), HasSubstr("f32["));
  }
  EXPECT_EQ(ops.size(), 3u);
  EXPECT_GT(ops["forward"], 6 * 30);
  EXPECT_GT(ops["backward"], ops["forward"]);
  EXPECT_GT(ops["optimizer"], 0);
  for (const char* phase : {"forward", "backward", "reduce", "optimizer", "data"}) {
    for (const ProfileEvent& event : events) {
      if (event.name != phase) continue;
      EXPECT_EQ(event.around, "step") << phase;
    }
  }
  EXPECT_EQ(ReadProfile(Directory("run")).at("otherData").at("first_step"), 2);
}

// The same bits with every op, without ops, and without a profile.
TEST_F(Profile, ChangesNoNumber) {
  Train("without", kSteps);
  Train("ops", With(kSteps, kProfile));
  Train("phases", With(kSteps, "train.profile={ first_step: 2 steps: 3 ops: false }"));
  EXPECT_EQ(Trace(Directory("ops"), 6), Trace(Directory("without"), 6));
  EXPECT_EQ(Trace(Directory("phases"), 6), Trace(Directory("without"), 6));
  EXPECT_FALSE(Exists(Directory("without") / "profile"));
  const std::vector<ProfileEvent> events = Events("phases");
  EXPECT_EQ(CountOf(events, "forward"), 6);
  for (const ProfileEvent& event : events) EXPECT_FALSE(event.facts.contains("instruction"));
}

TEST_F(Profile, EachRankHasItsOwnOnACommonClock) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("run", With(kSteps, kProfile), {.ranks = 2});
  const std::vector<ProfileEvent> first = Events("run", 0), second = Events("run", 1);
  for (const auto* events : {&first, &second}) {
    EXPECT_EQ(StepsOf(*events, kTrainingLane, "step"), (Steps{2, 3, 4}));
    EXPECT_EQ(CountOf(*events, "forward"), 3);
    EXPECT_EQ(CountOf(*events, "sum of gradients starts"), 3);
  }
  EXPECT_EQ(CountOf(first, "write checkpoint"), 1);
  EXPECT_EQ(CountOf(second, "write checkpoint"), 0);
  EXPECT_EQ(CountOf(second, "save"), 1);
  // No rank ends a step before the other has begun it: each waits for the other's gradients.
  const auto step = [](const std::vector<ProfileEvent>& events, int64_t number) {
    return *std::ranges::find_if(events, [&](const ProfileEvent& event) {
      return event.name == "step" && event.facts.at("step") == number;
    });
  };
  for (const int64_t number : {2, 3, 4}) {
    EXPECT_LT(step(first, number).begin, step(second, number).end);
    EXPECT_LT(step(second, number).begin, step(first, number).end);
  }
}

// A process that goes on among the steps records the rest of them, and one after them nothing.
TEST_F(Profile, OfARunThatContinues) {
  const Arguments command = Pretrain("run", With(kSteps, kProfile));
  const Outcome stopped = Run(command, {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@3"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_EQ(StepsOf(Events("run"), kTrainingLane, "step"), (Steps{2, 3}));
  ASSERT_EQ(Run(command).code, 0);
  EXPECT_EQ(StepsOf(Events("run"), kTrainingLane, "step"), Steps{4});
  EXPECT_EQ(ReadProfile(Directory("run")).at("otherData").at("first_step"), 4);

  const std::string before = ReadWholeFile(ProfilePath(Directory("run")));
  const Outcome later = Run(Pretrain("run", {"train.steps=9", kProfile}));
  ASSERT_EQ(later.code, 0) << later.err;
  EXPECT_TRUE(later.Says("train.profile: step 4 is done, nothing is recorded")) << later.err;
  EXPECT_EQ(ReadWholeFile(ProfilePath(Directory("run"))), before);
}

TEST_F(Profile, OfStepsThatDoNotCome) {
  Train("run", With(kSteps, "train.profile={ first_step: 5 steps: 100 }"));
  const std::vector<ProfileEvent> events = Events("run");
  EXPECT_EQ(StepsOf(events, kTrainingLane, "step"), (Steps{5, 6}));
  EXPECT_EQ(StepsOf(events, kTrainingLane, "evaluation"), Steps{6});
  EXPECT_EQ(CountOf(events, "make batches"), 1);

  const Outcome beyond =
      Run(Pretrain("none", With(kSteps, "train.profile={ first_step: 7 steps: 1 }")));
  EXPECT_EQ(beyond.code, 2);
  EXPECT_TRUE(beyond.Says("train.profile.first_step 7 is after train.steps 6")) << beyond.err;

  // A run that fails in its window leaves what it has.
  const Outcome failed =
      Run(Pretrain("failed", {"train.max_skipped_steps=1", "train.max_rollbacks=0", kProfile}),
          {.environment = {"SYNTRA_FAILPOINT=gradient_nan@2-4"}});
  ASSERT_EQ(failed.code, 6) << failed.err;
  EXPECT_EQ(StepsOf(Events("failed"), kTrainingLane, "step"), (Steps{2, 3}));
}

// Nothing that happens to the file ends the run.
TEST_F(Profile, ThatCannotBeWrittenIsAWarning) {
  CreateDirectories(Directory("file"));
  ReplaceFileDurably(Directory("file") / "profile", "in the way");
  CreateDirectories(Directory("link"));
  CreateDirectories(scratch_ / "elsewhere");
  std::filesystem::create_directory_symlink(scratch_ / "elsewhere", Directory("link") / "profile");
  for (const std::string run : {"file", "link"}) {
    const Outcome outcome = Run(Pretrain(run, With(kSteps, kProfile)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.Says("no profile of steps 2 to 4: ")) << outcome.err;
    EXPECT_TRUE(outcome.Says((Directory(run) / "profile").string())) << outcome.err;
  }
  EXPECT_TRUE(ListDirectory(scratch_ / "elsewhere").empty());
}

}  // namespace
}  // namespace syntra
