// SPDX-License-Identifier: Apache-2.0
// Unusual environments of a process: closed descriptors, full disks, FIFOs or links instead of
// files, files that change while they are used.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Surroundings : public TinyRun {
 protected:
  // Runs the program with these redirections of the shell.
  static StartOptions Redirected(const std::string& redirections) {
    return {.wrapper = {"bash", "-c", "exec \"$@\" " + redirections, "bash"}};
  }
  Arguments ShortRun(const std::string& name = "run") const {
    return Pretrain(name, {"train.steps=4"});
  }
};

TEST_F(Surroundings, MessagesDoNotLandInFilesWhereDescriptorsAreClosed) {
  EXPECT_EQ(Run(ShortRun(), Redirected("<&- >&- 2>&-")).code, 0);
  // Each line is JSON.
  EXPECT_EQ(Metrics("run").size(), 6u);
}

// A run does not fail because its last message cannot be printed.
TEST_F(Surroundings, ARunNeedsNoOutput) {
  EXPECT_EQ(Run(ShortRun("full"), Redirected(">/dev/full 2>&1")).code, 0);
  EXPECT_EQ(NewestStep("full"), 4);
  // A reader that is gone.
  EXPECT_EQ(Run(ShortRun("pipe"), Redirected("> >(exec <&-) 2>&1")).code, 0);
}

TEST_F(Surroundings, ASmallStackSuffices) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer puts room between all that lies on the stack";
#endif
  const Outcome outcome =
      Run(ShortRun(), {.wrapper = {"bash", "-c", "ulimit -s 64 && exec \"$0\" \"$@\""}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// Libraries decide how much is too little.
TEST_F(Surroundings, ATooSmallStackIsNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "with AddressSanitizer the program has no handlers of its own";
#endif
  for (const int kib : {20, 28}) {
    const std::string script = fmt::format("ulimit -s {} && exec -c \"$0\" \"$@\"", kib);
    const Outcome outcome = Run(ShortRun(), {.wrapper = {"bash", "-c", script}});
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_TRUE(outcome.Says(fmt::format("ulimit -s allows {} KiB; allow 256 or more", kib)))
        << outcome.err;
  }
}

TEST_F(Surroundings, AFullDiskForTheLogIsSaidOnce) {
  CreateDirectories(Directory("run") / "log");
  // Room for the checkpoints, which are checked, but not for the log.
  ReplaceFileDurably(Directory("run") / "log/rank-0000.log", std::string(1300000, '\n'));
  ReplaceFileDurably(Directory("run") / "metrics.jsonl", std::string(1300000, '\n'));
  const Outcome outcome = Run(ShortRun(), {.file_size_limit = 1300000});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string log = "rank-0000.log: File too large: the limit on file sizes (ulimit -f)";
  EXPECT_TRUE(outcome.Says(log)) << outcome.err;
  EXPECT_EQ(outcome.err.find(log, outcome.err.find(log) + 1), std::string::npos) << outcome.err;
}

// Only rank 0 has the terminal for its lines, too.
TEST_F(Surroundings, ARankWithoutALogSaysSo) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  CreateDirectories(Directory("run") / "log");
  ASSERT_EQ(mkfifo((Directory("run") / "log/rank-0001.log").c_str(), 0600), 0);
  const Outcome outcome = Run(ShortRun(), {.ranks = 2});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("warning: rank 1 has no log file: ")) << outcome.err;
}

TEST_F(Surroundings, FifosWhereFilesBelongAreRefusedAtOnce) {
  const std::pair<const char*, int> cases[] = {
      {"LOCK", 4}, {"STATUS", 4}, {"run.json", 4}, {"metrics.jsonl", 0}, {"log/rank-0000.log", 0}};
  for (const auto& [name, code] : cases) {
    const Path directory = Directory(std::string("fifo-") + Path(name).filename().string());
    CreateDirectories(directory / "log");
    ASSERT_EQ(mkfifo((directory / name).c_str(), 0600), 0);
    const Outcome outcome = Run(ShortRun(directory.filename()));
    EXPECT_EQ(outcome.code, code) << name << outcome.err;
    EXPECT_TRUE(outcome.Says((directory / name).string() + ": it is a FIFO, not a file"))
        << outcome.err;
  }
  const Path config = scratch_ / "fifo.textproto";
  ASSERT_EQ(mkfifo(config.c_str(), 0600), 0);
  const Outcome outcome = Run({"plan", "--config", config.string()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.Says("it is a FIFO, not a file")) << outcome.err;
}

TEST_F(Surroundings, LinksInARunDirectoryLeadNowhere) {
  const Path precious = scratch_ / "precious";
  const std::string content = "{\"step\":99,\"loss\":1}\n";
  for (const char* name : {"LOCK", "STATUS", "run.json", "metrics.jsonl", "log/rank-0000.log"}) {
    ReplaceFileDurably(precious, content);
    const Path directory = Directory(std::string("link-") + Path(name).filename().string());
    CreateDirectories(directory / "log");
    std::filesystem::create_symlink(precious, directory / name);
    const Outcome outcome = Run(ShortRun(directory.filename()));
    EXPECT_TRUE(outcome.Says((directory / name).string() + ": it is a symbolic link"))
        << outcome.err;
    EXPECT_EQ(ReadWholeFile(precious), content) << name;
  }
}

TEST_F(Surroundings, WhatAKilledProcessLeftIsRemoved) {
  const Path files[] = {Directory("run") / "STATUS.tmp-99999",
                        Directory("run") / "predictions/sst2.jsonl.tmp-99999",
                        Directory("run") / "submission/SST-2.tsv.tmp-99999"};
  for (const Path& file : files) {
    CreateDirectories(file.parent_path());
    ReplaceFileDurably(file, "half");
  }
  EXPECT_EQ(Run(ShortRun()).code, 0);
  for (const Path& file : files) EXPECT_FALSE(std::filesystem::exists(file)) << file;
}

TEST_F(Surroundings, AShardThatIsCutWhileTrainingIsNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "with AddressSanitizer the program has no handlers of its own";
#endif
  Program run(scratch_, Pretrain("run", {"train.steps=1000000", "evaluation.every=0"}));
  ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("run") >= 1 || !run.running(); }));
  const Path shard = scratch_ / "prepared/train/train.jsonl.tokens";
  ASSERT_EQ(truncate(shard.c_str(), 0), 0);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(outcome.Says(shard.string() + " was cut short while it was in use: from "))
      << outcome.err;
}

// A disk that returns other bytes than were written.
TEST_F(Surroundings, AShardThatIsDamagedWhileTrainingIsNamed) {
  const Arguments train = Pretrain("run", {"train.steps=1000000", "evaluation.every=0"});
  Program run(scratch_, train);
  ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("run") >= 1 || !run.running(); }));
  const Path shard = scratch_ / "prepared/train/train.jsonl.tokens";
  const char other = static_cast<char>(ReadWholeFile(shard)[100] ^ 1);
  File::OpenOwnForWrite(shard).WriteAt(100, std::as_bytes(std::span(&other, 1)));
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(outcome.Says(shard.string() + ": damaged near byte 0: ")) << outcome.err;
  EXPECT_TRUE(outcome.Says("remove it and prepare the corpus again")) << outcome.err;

  std::filesystem::remove(shard);
  Train("run", {"train.steps=" + std::to_string(LastLoggedStep("run") + 2)});
}

// A checkpoint that somebody else made names places of this machine.
TEST_F(Surroundings, ACheckpointDoesNotChooseWhereEvalWrites) {
  Train("run", {"train.steps=5"});
  const Path victim = scratch_ / "prepared";
  const Path received = scratch_ / "received";
  CreateDirectories(received);
  std::filesystem::rename(CheckpointPath("run", 5), received / "step-0000000005");
  RemoveAll(victim);
  RemoveAll(Directory("run"));
  const Outcome outcome = Run({"eval", "--checkpoint", (received / "step-0000000005").string()});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(outcome.Says("lies in no run directory")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(victim));
  EXPECT_FALSE(std::filesystem::exists(Directory("run")));
  const Path chosen = scratch_ / "chosen";
  const Outcome again =
      Run({"eval", "--checkpoint", received.string(), "--set", "data.prepared=" + chosen.string()});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(std::filesystem::exists(chosen / "validation/INDEX.json"));
}

}  // namespace
}  // namespace syntra
