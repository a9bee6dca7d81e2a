// SPDX-License-Identifier: Apache-2.0
// A power loss at any moment of a run: no committed checkpoint is lost, and the continued run ends
// like one that was not interrupted. A power loss after a command has ended: nothing is lost.
#include <functional>
#include <set>

#include "base/text.h"
#include "checkpoint/recover.h"
#include "tests/base/strace.h"
#include "tests/checkpoint/crashing_disk.h"
#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

// The step of a path that ends with a checkpoint's name, or -1.
int64_t StepOf(const std::string& path) {
  int64_t step = -1;
  const std::string name = Path(path).filename();
  return name.starts_with("step-") && ParseInt64(name.substr(5), &step) ? step : -1;
}

// Runs, on a disk of their own, of which the system calls are recorded.
template <typename Runs>
class RecordedRuns : public Runs {
 protected:
  void SetUp() override {
    Runs::SetUp();
    if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
    CreateDirectories(base_ = this->scratch_ / "disk");
  }

  // Starts a program so that its system calls are recorded.
  StartOptions Recording() const {
    std::vector<std::string> wrapper{"strace", "-o", RecordingFile()};
    for (const std::string& option : RecordingOptions()) wrapper.push_back(option);
    return {.wrapper = wrapper};
  }
  std::vector<RecordedCall> Recorded() const { return ReadRecording(RecordingFile()); }

  // Expects that these files are as they are now after any power loss that follows what is
  // recorded, which began with `disk`.
  void ExpectKept(CrashingDisk disk, const std::function<bool(const std::string& path)>& is_kept) {
    for (const RecordedCall& call : Recorded()) disk.Apply(call);
    const CrashingDisk::State written = CrashingDisk(base_).Everything();
    ASSERT_TRUE(disk.Everything() == written) << "the replay is not what happened";
    disk.ForEachCrash(100, [&](const CrashingDisk::State& state) {
      for (const auto& [path, content] : written) {
        if (!is_kept(path)) continue;
        const auto found = state.find(path);
        EXPECT_TRUE(found != state.end() && found->second == content) << path << " is lost";
      }
    });
  }

  Path base_;

 private:
  Path RecordingFile() const { return this->scratch_ / "trace"; }
};

using PowerLoss = RecordedRuns<TinyRun>;
using PowerLossOfTasks = RecordedRuns<ToyTask>;

TEST_F(PowerLoss, DuringARun) {
  const std::string run = "disk/runs/tiny";
  const Path checkpoints = Directory(run) / "checkpoints";
  const Arguments settings{"data.prepared=", "train.steps=6", "checkpoint.every=2"};
  // The run makes its directory and the one above it.
  CrashingDisk disk(base_);
  Train(run, settings, Recording());
  const std::string straight = Trace(Directory(run), 6);
  const CrashingDisk::State result = CrashingDisk(base_).Everything();

  int64_t renamed = -1, committed = -1;
  int states = 0;
  for (const RecordedCall& call : Recorded()) {
    disk.Apply(call);
    if (call.name == "rename") renamed = std::max(renamed, StepOf(call.arguments[1]));
    const bool syncs = call.name == "fsync";
    if (syncs && call.arguments[0] == checkpoints) committed = renamed;
    if (!syncs) continue;
    // Three: nothing that was not synced survives, all does, some does.
    disk.ForEachCrash(3, [&](const CrashingDisk::State& state) {
      Restore(state, base_);
      const auto found = FindNewestValid(checkpoints, Recovery::kReadOnly);
      ASSERT_GE(found ? found->info().step : -1, committed) << call.arguments[0];
      if (++states % 8 != 0) return;
      Train(run, settings);
      ASSERT_EQ(Trace(Directory(run), 6), straight) << "after a crash at " << call.arguments[0];
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(committed, 6);
  EXPECT_GT(states, 100);
  EXPECT_TRUE(disk.Everything() == result) << "the replay is not what happened";
}

// A run that continues from a checkpoint keeps the lines of metrics up to there. Where ranks share
// the optimizer's state, each writes its part before rank 0 commits all of them.
TEST_F(PowerLoss, OfRanksThatShareTheirState) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Path run = base_ / "tiny";
  CrashingDisk disk(base_);
  StartOptions ranks = Recording();
  ranks.ranks = 2;
  Train("disk/tiny",
        {"data.prepared=", "train.steps=6", "checkpoint.every=2", "train.sharding=OPTIMIZER_STATE"},
        ranks);
  std::set<int64_t> saved;
  for (const RecordedCall& call : Recorded()) {
    disk.Apply(call);
    if (call.name != "fsync") continue;
    disk.ForEachCrash(3, [&](const CrashingDisk::State& state) {
      Restore(state, base_);
      const auto found = FindNewestValid(run / "checkpoints", Recovery::kReadOnly);
      if (!found || found->info().step == 0) return;
      saved.insert(found->info().step);
      EXPECT_GE(syntra::LastLoggedStep(run), found->info().step) << call.arguments[0];
    });
  }
  EXPECT_EQ(saved, (std::set<int64_t>{2, 4, 6}));
}

TEST_F(PowerLoss, AfterAConversion) {
  Train("run", {"model.mixer={ attention { heads: 2 head_size: 16 term { dot_product {} } } }",
                "train.steps=4"});
  for (const std::string format : {"huggingface", "safetensors", "syntra"}) {
    CrashingDisk disk(base_);
    const Outcome outcome =
        Run({"convert", "--input", Directory("run"), "--output", base_ / format, "--to", format},
            Recording());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    ExpectKept(disk, [](const std::string&) { return true; });
  }
}

// A run that is done is not trained again, so that what it has recorded must be there.
TEST_F(PowerLoss, AfterARun) {
  const CrashingDisk disk(base_);
  Train("disk/run", {"train.steps=4", "evaluation.every=2", "evaluation.samples=1"}, Recording());
  const std::set<std::string> records{"run/STATUS", "run/metrics.jsonl", "run/events.jsonl",
                                      "run/samples.jsonl"};
  for (const std::string& path : records) EXPECT_TRUE(Exists(base_ / path)) << path;
  ExpectKept(disk, [&](const std::string& path) { return records.contains(path); });
}

// Where the file system has no links, the best model is a copy.
TEST_F(PowerLossOfTasks, AfterARunThatCopiesItsBestModel) {
  StartOptions without_links = Recording();
  without_links.wrapper.insert(without_links.wrapper.end(), {"-e", "inject=link:error=EPERM"});
  const CrashingDisk disk(base_);
  const Outcome outcome = Run(Command("disk/run", {"train.steps=8"}), without_links);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(Exists(base_ / "run/best/toy"));
  ExpectKept(disk, [](const std::string& path) {
    return path.starts_with("run/best/") || path.starts_with("run/predictions/") ||
           path == "run/results.json";
  });
}

}  // namespace
}  // namespace syntra
