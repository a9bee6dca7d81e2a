// SPDX-License-Identifier: Apache-2.0
// A run that is killed or stopped and then continued ends bitwise equal to an uninterrupted run.
#include <signal.h>

#include <deque>
#include <random>

#include "checkpoint/layout.h"
#include "checkpoint/read.h"
#include "checkpoint/save.h"
#include "core/buffer.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

constexpr int64_t kSteps = 20;

struct Case {
  const char* name;
  int ranks;
  Arguments settings;
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class Resume : public TinyRun, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    if (GetParam().ranks > 1 && MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    TinyRun::SetUp();
  }
  Arguments Settings(const std::string& more) const {
    Arguments settings = GetParam().settings;
    settings.push_back(more);
    return settings;
  }
  StartOptions Ranks() const { return {.ranks = GetParam().ranks}; }
};

TEST_P(Resume, TenAndKillAndTenIsTwenty) {
  const Arguments settings = Settings("checkpoint.every=10");
  Train("straight", settings, Ranks());
  // The steps after the checkpoint wait, or all may be over before the kill.
  StartOptions options = Ranks();
  options.environment = {"SYNTRA_FAILPOINT=slow_rank@11-20"};
  {
    Program first(scratch_, Pretrain("broken", settings), options);
    ASSERT_TRUE(WaitUntil([&] { return HasCheckpoint("broken", 10) || !first.running(); }));
    first.Kill();
  }
  ASSERT_EQ(NewestStep("broken"), 10);
  Train("broken", settings, Ranks());
  EXPECT_EQ(Trace(Directory("broken"), kSteps), Trace(Directory("straight"), kSteps));
}

// Anywhere: in the data, a step, a save, an evaluation, or the start of the run after a kill.
TEST_P(Resume, KilledAtRandomTimes) {
  const Arguments settings = Settings("checkpoint.every=3");
  Train("straight", settings, Ranks());
  std::mt19937 random(20240131 + GetParam().ranks);
  // On a fast machine all steps take less time than it takes to see one of them: the last six wait.
  StartOptions options = Ranks();
  options.environment = {"SYNTRA_FAILPOINT=slow_rank@15-20"};
  int kills = 0;
  for (; kills < 5; ++kills) {
    Program run(scratch_, Pretrain("broken", settings), options);
    const int64_t ahead = 1 + static_cast<int64_t>(random() % 5);
    const int64_t step = std::min(LastLoggedStep("broken") + ahead, kSteps - 1);
    WaitUntil([&] { return LastLoggedStep("broken") >= step || !run.running(); });
    SleepSeconds(0.05 * (static_cast<double>(random() % 1000) / 1000));
    if (!run.running()) break;
    run.Kill();
    // Three starts without a checkpoint between them are refused; that guard has its own test.
    std::filesystem::remove(Directory("broken") / "STATUS");
  }
  EXPECT_GE(kills, 2);
  Train("broken", settings, Ranks());
  EXPECT_EQ(Trace(Directory("broken"), kSteps), Trace(Directory("straight"), kSteps));
}

TEST_P(Resume, StoppedInOrderAtOddSteps) {
  const Arguments settings = Settings("checkpoint.every=100");
  Train("straight", settings, Ranks());
  for (int64_t step : {1, 5, 12}) {
    // Steps of this start: a signal that comes before there are handlers ends the process.
    step = std::max(step, LastLoggedStep("broken") + 1);
    Program run(scratch_, Pretrain("broken", settings), Ranks());
    ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("broken") >= step || !run.running(); }));
    run.Signal(SIGUSR1);
    const int code = run.Wait().code;
    if (code == 0) break;  // it was faster
    EXPECT_EQ(code, 75);
  }
  Train("broken", settings, Ranks());
  EXPECT_EQ(Trace(Directory("broken"), kSteps), Trace(Directory("straight"), kSteps));
}

const Arguments kExact{"train.reduction=EXACT", "train.micro_batch_size=1"};

const Case kCases[] = {
    {"AdamWAlone", 1, {}},
    {"AdafactorAlone", 1, {"optimizer.kind=ADAFACTOR", "optimizer.min_factored_size=16"}},
    {"AdamWTwoRanks", 2, {}},
    {"AdafactorTwoRanks", 2, {"optimizer.kind=ADAFACTOR", "optimizer.min_factored_size=16"}},
    {"ExactFourRanks", 4, kExact},
    {"DenseAndDotProduct",
     1,
     {"model.mixer={ attention { heads: 2 head_size: 16 dropout: 0.1 gate: SIGMOID "
      "term { dense { max_length: 32 } } term { dot_product {} } } }",
      "train.micro_batch_size=2"}},
    {"RedrawnFeatures",
     1,
     {"model.mixer={ performer { heads: 2 head_size: 16 features: 24 redraw_every: 5 } }",
      "model.positions={ sinusoidal {} }", "data.pack=false"}},
};
INSTANTIATE_TEST_SUITE_P(All, Resume, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// One rank alone is killed, from its start on: the job ends with it, and the next one goes on.
class ResumeRanks : public Resume {};

TEST_P(ResumeRanks, OneIsKilledAtRandomTimes) {
  const Arguments settings = Settings("checkpoint.every=3");
  const size_t ranks = GetParam().ranks;
  Train("straight", settings, Ranks());
  std::mt19937 random(20240201 + GetParam().ranks);
  int kills = 0;
  double longest_delay = 1.2;  // seconds; halved until a kill comes before the end
  while (kills < 5 && longest_delay > 0.01) {
    Program run(scratch_, Pretrain("broken", settings), Ranks());
    ASSERT_TRUE(WaitUntil([&] { return run.RankPids().size() == ranks || !run.running(); }));
    const std::vector<pid_t> pids = run.RankPids();
    SleepSeconds(longest_delay * (static_cast<double>(random() % 1000) / 1000));
    if (pids.size() == ranks) kill(pids[random() % ranks], SIGKILL);
    const int code = run.Wait().code;
    for (const pid_t pid : pids) {
      EXPECT_TRUE(WaitUntil([&] { return !Alive(pid); })) << "rank " << pid << " lives on";
    }
    std::filesystem::remove(Directory("broken") / "STATUS");
    if (code != 0) {
      ++kills;
      continue;
    }
    if (kills > 0) break;
    std::filesystem::remove_all(Directory("broken"));
    longest_delay /= 2;
  }
  EXPECT_GE(kills, 1);
  Train("broken", settings, Ranks());
  EXPECT_EQ(Trace(Directory("broken"), kSteps), Trace(Directory("straight"), kSteps));
}

INSTANTIATE_TEST_SUITE_P(All, ResumeRanks,
                         testing::Values(Case{"AdamWTwoRanks", 2, {}},
                                         Case{"SharedStateThreeRanks",
                                              3,
                                              {"train.sharding=OPTIMIZER_STATE",
                                               "train.batch_size=12"}},
                                         Case{"ExactFourRanks", 4, kExact}),
                         [](const auto& info) { return info.param.name; });

// The comparison sees a run that did not restore everything: with the order of the data or the
// state of the optimizer wrong from step 11 on, the traces differ.
class ResumeControl : public TinyRun {
 protected:
  // Saves the checkpoint anew with zeros for the optimizer's state.
  void LoseState(const std::string& name, int64_t step) const {
    const Path path = CheckpointPath(name, step);
    Checkpoint checkpoint(path);
    std::deque<Buffer> values;
    std::vector<TensorRecord> tensors;
    for (const auto& [tensor, entry] : checkpoint.tensors()) {
      const TensorType type = *checkpoint.Find(tensor);
      const Buffer& zeros = values.emplace_back(type.bytes(), "a tensor");
      if (!tensor.starts_with(kOptimizerGroup)) {
        checkpoint.Read(tensor, std::span(zeros.data(), zeros.size()));
      }
      tensors.push_back({tensor, type, zeros.data()});
    }
    const std::string tokenizer = *checkpoint.ReadFile(kTokenizerFile);
    const std::vector<FileRecord> files{{kTokenizerFile, tokenizer}};
    const CheckpointInfo info = checkpoint.info();
    RemoveAll(path);
    SaveCheckpoint(path.parent_path(), info, tensors, {.log = false}, files);
  }
};

TEST_F(ResumeControl, AWrongPositionOrALostStateShows) {
  const Arguments constant{"checkpoint.every=10", "optimizer.schedule.kind=CONSTANT"};
  Train("straight", constant);
  for (const std::string name : {"position", "state"}) {
    Arguments half = constant;
    half.emplace_back("train.steps=10");
    Train(name, half);
    if (name == "position") SetAttribute(name, 10, "rollbacks", "11-10");
    if (name == "state") LoseState(name, 10);
    Train(name, constant);
    EXPECT_NE(Trace(Directory(name), kSteps), Trace(Directory("straight"), kSteps)) << name;
    // The last step, and one before step 11.
    EXPECT_NE(Metrics(name)[23].at("loss"), Metrics("straight")[23].at("loss")) << name;
    EXPECT_EQ(Metrics(name)[10].at("loss"), Metrics("straight")[10].at("loss")) << name;
  }
  Train("other-seed", {"checkpoint.every=10", "optimizer.schedule.kind=CONSTANT", "train.seed=2"});
  EXPECT_NE(Trace(Directory("other-seed"), kSteps), Trace(Directory("straight"), kSteps));
}

// A longer schedule is a change of mind, not a mistake: ten steps and ten more are twenty.
TEST_F(ResumeControl, MoreStepsContinueExactly) {
  const Arguments settings{"optimizer.schedule.kind=CONSTANT"};
  Train("straight", settings);
  Train("longer", {"optimizer.schedule.kind=CONSTANT", "train.steps=10"});
  Train("longer", settings);
  EXPECT_EQ(Trace(Directory("longer"), kSteps), Trace(Directory("straight"), kSteps));
}

struct Move {
  int from, to;  // ranks
};

void PrintTo(const Move& move, std::ostream* out) { *out << move.from << " to " << move.to; }

// Ten steps at some ranks, then ten more at others.
class ResumeElsewhere : public TinyRun, public testing::WithParamInterface<Move> {
 protected:
  void SetUp() override {
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    TinyRun::SetUp();
  }
  // The threads change too. More threads than cores would wait for each other in turns.
  void TrainTwice(const Arguments& settings, const Arguments& later = {}) const {
    Arguments first = settings, second = settings;
    first.push_back("train.steps=10");
    second.push_back(fmt::format("train.threads={}", 2 / GetParam().to));
    second.insert(second.end(), later.begin(), later.end());
    Train("moved", first, {.ranks = GetParam().from});
    Train("moved", second, {.ranks = GetParam().to});
  }
};

TEST_P(ResumeElsewhere, ExactGivesTheSameBits) {
  Arguments settings = kExact;
  settings.push_back("optimizer.schedule.kind=CONSTANT");
  Train("straight", settings);
  TrainTwice(settings);
  EXPECT_EQ(Trace(Directory("moved"), kSteps), Trace(Directory("straight"), kSteps));
}

// A smooth activation and Adafactor: see equality_test.cc.
TEST_P(ResumeElsewhere, FastGivesTheSameCurve) {
  const Arguments settings{"optimizer.schedule.kind=CONSTANT", "optimizer.schedule.rate=0.02",
                           "optimizer.kind=ADAFACTOR", "optimizer.min_factored_size=16",
                           "model.feed_forward.activation=GATED_GELU"};
  Train("straight", settings, {.ranks = GetParam().from});
  TrainTwice(settings, {"train.micro_batch_size=1"});
  const auto straight = Metrics("straight"), moved = Metrics("moved");
  ASSERT_EQ(straight.size(), moved.size());
  for (size_t i = 0; i < straight.size(); ++i) {
    if (!straight[i].contains("loss")) continue;
    const double loss = straight[i].at("loss");
    const int64_t step = straight[i].at("step");
    EXPECT_NEAR(moved[i].at("loss").get<double>(), loss, step <= 10 ? 0 : 1e-5 * loss) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ResumeElsewhere, testing::Values(Move{1, 2}, Move{2, 1}, Move{4, 2}),
                         [](const auto& info) {
                           return fmt::format("{}To{}", info.param.from, info.param.to);
                         });

// Settings that decide the results of an exact run may not change.
TEST_F(ResumeControl, ExactRefusesAnotherTree) {
  Arguments settings = kExact;
  settings.insert(settings.end(), {"train.steps=1", "optimizer.schedule.kind=CONSTANT"});
  Train("run", settings);
  const auto refuses = [&](const std::string& change, const std::string& difference) {
    Arguments changed = settings;
    changed.push_back(change);
    const Outcome outcome = Run(Pretrain("run", changed));
    EXPECT_EQ(outcome.code, 5) << outcome.err;
    EXPECT_TRUE(outcome.Says("was made with other settings")) << outcome.err;
    EXPECT_TRUE(outcome.Says(difference)) << outcome.err;
  };
  refuses("train.micro_batch_size=2", "train.micro_batch_size: 1 -> 2");
  refuses("train.reduction=FAST", "train.reduction: EXACT -> FAST");
}

}  // namespace
}  // namespace syntra
