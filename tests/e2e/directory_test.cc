// SPDX-License-Identifier: Apache-2.0
// The run directory: concurrent use, changes between starts, damage, and full disks.
#include <signal.h>

#include <tuple>

#include "checkpoint/layout.h"
#include "tests/base/strace.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Directories : public TinyRun {
 protected:
  // What runs the program in a mount namespace of its own, set up by this shell command; empty if
  // that is not allowed here.
  static Arguments Mounted(const std::string& command) {
    if (std::system("unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null") != 0) return {};
    return {"unshare", "-m", "bash", "-c", command + " && exec \"$@\"", "bash"};
  }
  // A disk for the run that somebody else fills once the run has its first checkpoint, of 0.75 MiB:
  // metrics still fit there, a second checkpoint does not.
  Arguments FilledLater() const {
    CreateDirectories(Directory("run"));
    return Mounted(fmt::format(
        "mount -t tmpfs -o size=4m tmpfs '{0}' && {{ (until [ -e '{1}/MANIFEST' ]; do :; done; "
        "head -c 2900k /dev/zero > '{0}/other') & }}",
        Directory("run").string(), CheckpointPath("run", 0).string()));
  }
};

TEST_F(Directories, ASecondRunIsTurnedAway) {
  Program first(scratch_, Pretrain("run", {"train.steps=1000000"}));
  ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("run") >= 1; }));
  const Outcome second = Run(Pretrain("run", {"train.steps=1000000"}));
  EXPECT_EQ(second.code, 8);
  EXPECT_TRUE(second.Says(fmt::format("is in use by process {} on", first.pid()))) << second.err;
  first.Kill();
  // The lock dies with its holder.
  const std::string steps = fmt::format("train.steps={}", std::max<int64_t>(6, NewestStep("run")));
  EXPECT_EQ(Run(Pretrain("run", {steps})).code, 0);
}

TEST_F(Directories, ADoneRunSaysSo) {
  Train("run");
  const std::string before = Trace(Directory("run"), 20);
  const Outcome again = Run(Pretrain("run"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("is done: 20 of 20 steps"), std::string::npos) << again.out;
  EXPECT_EQ(Trace(Directory("run"), 20), before);
}

TEST_F(Directories, WhatDecidesTheNumbersMayNotChange) {
  Train("run", {"train.steps=10"});
  const std::string described = ReadWholeFile(Directory("run") / "config.textproto");
  const Outcome outcome = Run(Pretrain(
      "run", {"train.seed=7", "model.dropout=0.2", "train.batch_size=4", "optimizer.beta1=0.8"}));
  EXPECT_EQ(outcome.code, 5);
  for (const char* line : {"train.seed: 1 -> 7", "model.dropout: 0.1 -> 0.2",
                           "train.batch_size: 8 -> 4", "optimizer.beta1: 0.9 -> 0.8"}) {
    EXPECT_TRUE(outcome.Says(line)) << outcome.err;
  }
  EXPECT_FALSE(outcome.Says("train.steps"));
  // The refused configuration must not be taken for the run's.
  EXPECT_EQ(ReadWholeFile(Directory("run") / "config.textproto"), described);

  // Nothing is tokenized before it is refused.
  WriteSentencePieceModel(tokenizer_, 95);
  const Outcome tokenizer = Run(Pretrain("run"));
  EXPECT_EQ(tokenizer.code, 5);
  EXPECT_TRUE(tokenizer.Says("the tokenizer changed: digest ")) << tokenizer.err;
  EXPECT_FALSE(tokenizer.Says("making it again")) << tokenizer.err;
  WriteSentencePieceModel(tokenizer_, 96);

  // Other bytes of the same length, so the file must be read to notice.
  std::string corpus = ReadWholeFile(training_);
  std::swap(corpus[corpus.find("aa ")], corpus[corpus.find("ba ")]);
  ReplaceFileDurably(training_, corpus);
  const Path shard = scratch_ / "prepared/train/train.jsonl.tokens";
  const auto made = std::filesystem::last_write_time(shard);
  const Outcome other = Run(Pretrain("run"));
  EXPECT_EQ(other.code, 5);
  EXPECT_TRUE(other.Says("was made from other bytes")) << other.err;
  EXPECT_EQ(std::filesystem::last_write_time(shard), made);
}

TEST_F(Directories, WhatDoesNotMayChange) {
  Train("run", {"train.steps=10"});
  const Outcome outcome =
      Run(Pretrain("run", {"train.steps=16", "optimizer.schedule.kind=COSINE",
                           "optimizer.schedule.rate=0.02", "train.micro_batch_size=2",
                           "evaluation.every=2", "checkpoint.every=3", "train.threads=2"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(NewestStep("run"), 16);
  for (const char* part : {"train.steps: 10 -> 16", "optimizer.schedule.rate: 0.01 -> 0.02",
                           "the learning rate of the next step changes from 0 to ",
                           "; changed: evaluation.every: 5 -> 2, train.micro_batch_size: 0 -> 2",
                           "checkpoint.every: 5 -> 3"}) {
    EXPECT_TRUE(outcome.Says(part)) << part << "\n" << outcome.err;
  }
}

// Its configuration names the old place, where another run would begin.
TEST_F(Directories, AMovedRunContinuesWhereItIs) {
  Train("run", {"train.steps=3"});
  std::filesystem::rename(Directory("run"), Directory("moved run"));
  const std::string moved = Directory("moved run").string();
  for (const char* command : {"pretrain", "prepare", "check"}) {
    const Arguments more = command == std::string("prepare")
                               ? Arguments{command, moved, "--set", "data.prepared="}
                               : Arguments{command, moved, "--set", "train.steps=5"};
    const Outcome refused = Run(more);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_TRUE(refused.Says("the run in " + moved + " recorded train.directory " +
                             Directory("run").string() + ", which is not this directory"))
        << refused.err;
    EXPECT_TRUE(refused.Says("add --set 'train.directory=" + moved + "'; to")) << refused.err;
    EXPECT_FALSE(Exists(Directory("run")));
  }
  const Outcome named =
      Run({"pretrain", moved, "--set", "train.steps=5", "--set", "train.directory=" + moved});
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(NewestStep("moved run"), 5);
  // Now it has recorded the new one, under any of its names.
  std::filesystem::create_directory_symlink(Directory("moved run"), Directory("link"));
  EXPECT_EQ(Run({"pretrain", Directory("link").string(), "--set", "train.steps=7"}).code, 0);
  EXPECT_EQ(NewestStep("moved run"), 7);
}

TEST_F(Directories, ADamagedCheckpointIsPassedOver) {
  Train("straight");
  Train("run", {"train.steps=20"});
  Damage(CheckpointPath("run", 20));
  const Outcome outcome = Run(Pretrain("run"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("passed over checkpoint " + CheckpointPath("run", 20).string()))
      << outcome.err;
  EXPECT_TRUE(outcome.Says("continuing from " + CheckpointPath("run", 15).string())) << outcome.err;
  EXPECT_EQ(Trace(Directory("run"), 20), Trace(Directory("straight"), 20));
}

TEST_F(Directories, OnlyDamagedCheckpointsAreAnError) {
  Train("run");
  Damage(CheckpointPath("run", 15));
  Damage(CheckpointPath("run", 20));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Outcome outcome = Run(Pretrain("run"));
    EXPECT_EQ(outcome.code, 5);
    EXPECT_TRUE(outcome.Says("step-0000000015")) << outcome.err;
    EXPECT_TRUE(outcome.Says("step-0000000020")) << outcome.err;
  }
  EXPECT_EQ(LastLoggedStep("run"), 20);
}

// They may all be good, so the code is not that of damage, and they stay.
TEST_F(Directories, CheckpointsThatCannotBeReadNowAreUsedLater) {
  if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
  Train("run", {"train.steps=10"});
  const auto saved = DirectoryNames(Directory("run") / "checkpoints");
  // The manifests are read first, to see whether the run can continue; then all files.
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"EIO", "MANIFEST", "Input/output error; the disk or the file server fails"},
      {"EACCES", "MANIFEST", "Permission denied; change its rights or those of its directory"},
      {"ESTALE", "MANIFEST", "Stale file handle; the file server no longer knows it"},
      {"EIO", "shard-00000.h5", "Input/output error; the disk or the file server fails"}};
  for (const auto& [error, file, says] : cases) {
    Arguments wrapper{"strace",    "-f", "-o",
                      "/dev/null", "-e", fmt::format("inject=openat:error={}", error)};
    for (const std::string& name : saved) {
      wrapper.insert(wrapper.end(), {"-P", Directory("run") / "checkpoints" / name / file});
    }
    const Outcome outcome = Run(Pretrain("run"), {.wrapper = wrapper});
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_TRUE(outcome.Says("can be read, and they may all be good")) << outcome.err;
    for (const int64_t step : {5, 10}) {
      const Path path = CheckpointPath("run", step) / file;
      EXPECT_TRUE(outcome.Says(fmt::format("cannot read {}: {}", path.string(), says)))
          << outcome.err;
    }
    EXPECT_EQ(DirectoryNames(Directory("run") / "checkpoints"), saved);
  }
  // One that is damaged makes it an error of another kind.
  ReplaceFileDurably(CheckpointPath("run", 10) / "MANIFEST", "");
  const Outcome damaged =
      Run(Pretrain("run"),
          {.wrapper = {"strace", "-f", "-o", "/dev/null", "-e", "inject=openat:error=EIO", "-P",
                       CheckpointPath("run", 5) / "MANIFEST"}});
  EXPECT_EQ(damaged.code, 5) << damaged.err;
  EXPECT_TRUE(damaged.Says("restore one")) << damaged.err;
  const Outcome later = Run(Pretrain("run"));
  EXPECT_EQ(later.code, 0) << later.err;
  EXPECT_TRUE(later.Says("continuing from " + CheckpointPath("run", 5).string())) << later.err;
}

// Where what is there cannot be told, it is not taken for damage either.
TEST_F(Directories, ACheckpointThatCannotBeLookedAtMayBeGood) {
  if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
  Train("run", {"train.steps=5"});
  const Path manifest = CheckpointPath("run", 5) / "MANIFEST";
  const Outcome outcome = Run({"eval", CheckpointPath("run", 5).string()},
                              {.wrapper = {"strace", "-f", "-o", "/dev/null", "-e",
                                           "inject=newfstatat:error=EIO", "-P", manifest}});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(
      outcome.Says(fmt::format("cannot look at {}: Input/output error; the disk or the file "
                               "server fails",
                               manifest.string())))
      << outcome.err;
}

// Perhaps somebody has moved them, or their disk is not there now.
TEST_F(Directories, WithoutCheckpointsARunBeginsAnewAndKeepsItsRecords) {
  Train("run");
  const std::string metrics = ReadWholeFile(Directory("run") / "metrics.jsonl");
  RemoveAll(Directory("run") / "checkpoints");
  const Outcome anew = Run(Pretrain("run", {"train.steps=3"}));
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_TRUE(
      anew.Says("metrics.jsonl has steps up to 20, but there is no checkpoint: the run "
                "starts from step 0"))
      << anew.err;
  EXPECT_TRUE(anew.Says("what metrics.jsonl held is now in ")) << anew.err;
  EXPECT_EQ(ReadWholeFile(Directory("run") / "metrics.jsonl.old"), metrics);
  EXPECT_EQ(LastLoggedStep("run"), 3);
}

TEST_F(Directories, NoValidationIsFine) {
  ReplaceFileDurably(config_, [&] {
    std::string text = ReadWholeFile(config_);
    const size_t at = text.find("  validation:");
    return text.erase(at, text.find('\n', at) + 1 - at);
  }());
  const Outcome outcome = Run(Pretrain("run"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("perplexity"), std::string::npos) << outcome.out;
  EXPECT_EQ(Metrics("run").size(), 20u);
  const Outcome evaluated = Run({"eval", "--checkpoint", Directory("run").string()});
  EXPECT_EQ(evaluated.code, 2);
  EXPECT_TRUE(evaluated.Says("no data.validation; give --set data.validation=PATTERN"))
      << evaluated.err;
  const Outcome shown = Run({"inspect", "data", config_.string(), "--split", "validation", "--set",
                             "train.directory=" + Directory("run").string()});
  EXPECT_EQ(shown.code, 2);
  EXPECT_TRUE(shown.Says("no data.validation; give --set data.validation=PATTERN")) << shown.err;
}

TEST_F(Directories, ThreeStartsWithoutProgressAreEnough) {
  // The first start makes the checkpoint of step 0, which is progress; the next three make none.
  for (int start = 0; start < 4; ++start) {
    Program run(scratch_, Pretrain("run", {"train.steps=1000000", "checkpoint.every=0"}));
    // Begun anew at step 0 each time.
    ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("run") >= 2 || !run.running(); }));
    run.Kill();
    std::filesystem::remove(Directory("run") / "metrics.jsonl");
  }
  const Outcome outcome = Run(Pretrain("run"));
  EXPECT_EQ(outcome.code, 6);
  EXPECT_TRUE(outcome.Says("made no progress")) << outcome.err;
  std::filesystem::remove(Directory("run") / "STATUS");
  Train("run");
}

TEST_F(Directories, FullDiskAtTheStart) {
  const Outcome outcome = Run(Pretrain("run"), {.file_size_limit = 100000});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(outcome.Says("while saving checkpoint")) << outcome.err;
  EXPECT_EQ(NewestStep("run"), -1);
  EXPECT_EQ(LastLoggedStep("run"), -1);
  Train("run");
}

TEST_F(Directories, SmallDiskAtTheStart) {
  CreateDirectories(Directory("run"));
  const Arguments wrapper =
      Mounted("mount -t tmpfs -o size=300k tmpfs '" + Directory("run").string() + "'");
  if (wrapper.empty()) GTEST_SKIP() << "no mount namespaces here";
  const Outcome outcome = Run(Pretrain("run"), {.wrapper = wrapper});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(outcome.Says("has 300.0 KiB free, but the run needs ")) << outcome.err;
  EXPECT_TRUE(outcome.Says("3 checkpoints")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "prepared"));
}

// Also where rank 0 has asked another rank for its part of the state.
TEST_F(Directories, ADiskThatFillsUpLater) {
  for (const int ranks : MpirunPath().empty() ? std::vector{1} : std::vector{1, 2}) {
    const Arguments wrapper = FilledLater();
    if (wrapper.empty()) GTEST_SKIP() << "no mount namespaces here";
    const Outcome outcome = Run(
        Pretrain("run", {"train.steps=300", "evaluation.every=0", "checkpoint.max_failed_saves=3",
                         "checkpoint.every=50", "train.sharding=OPTIMIZER_STATE"}),
        {.ranks = ranks, .wrapper = wrapper});
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_TRUE(outcome.Says("checkpoint at step 50 failed (1 of 3 in a row)")) << outcome.err;
    EXPECT_TRUE(outcome.Says("checkpoint at step 100 failed (2 of 3 in a row)")) << outcome.err;
    EXPECT_FALSE(outcome.Says("step 200")) << outcome.err;
    RemoveAll(Directory("run"));
  }
}

// A run that could not save its end is not done.
TEST_F(Directories, MilestonesStay) {
  Train("run", {"train.steps=10", "evaluation.every=0", "checkpoint.every=2", "checkpoint.keep=2",
                "checkpoint.milestone_every=4"});
  std::vector<int64_t> steps;
  for (const CheckpointRef& each : ListCheckpoints(Directory("run") / "checkpoints")) {
    if (each.step > 0) steps.push_back(each.step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 10}));
}

TEST_F(Directories, TheLastSaveMustSucceed) {
  const Arguments wrapper = FilledLater();
  if (wrapper.empty()) GTEST_SKIP() << "no mount namespaces here";
  const Outcome outcome =
      Run(Pretrain("run", {"train.steps=100", "evaluation.every=0", "checkpoint.every=0"}),
          {.wrapper = wrapper});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(outcome.Says("step-0000000100")) << outcome.err;
}

TEST_F(Directories, ReadOnlyRunDirectory) {
  CreateDirectories(Directory("run"));
  const std::string path = Directory("run").string();
  const Arguments wrapper =
      Mounted(fmt::format("mount --bind '{0}' '{0}' && mount -o remount,ro,bind '{0}'", path));
  if (wrapper.empty()) GTEST_SKIP() << "no mount namespaces here";
  const Outcome outcome = Run(Pretrain("run"), {.wrapper = wrapper});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(outcome.Says("Read-only file system")) << outcome.err;
  const Outcome check =
      Run({"check", "--config", config_.string(), "--set", "train.directory=" + path},
          {.wrapper = wrapper});
  EXPECT_EQ(check.code, 4) << check.out << check.err;
}

}  // namespace
}  // namespace syntra
