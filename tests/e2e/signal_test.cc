// SPDX-License-Identifier: Apache-2.0
// Signals: runs save and stop, other commands die as shells expect, the launcher forwards ^C. Also
// runs whose directory or lock is removed.
#include <signal.h>
#include <sys/stat.h>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Signals : public TinyRun {
 protected:
  const Arguments kEndless{"train.steps=1000000", "checkpoint.every=0", "evaluation.every=0"};

  // A program that waits for its input, which never comes.
  std::unique_ptr<Program> StartWaiting(const Arguments& arguments) {
    const Path pipe = scratch_ / "pipe";
    mkfifo(pipe.c_str(), 0600);
    return std::make_unique<Program>(
        scratch_, arguments,
        StartOptions{.wrapper = {"sh", "-c", "exec \"$@\" <>\"$0\"", pipe.string()}});
  }
  bool Trains(const Program& run) {
    return WaitUntil([&] { return LastLoggedStep("run") >= 3 || !run.running(); }) && run.running();
  }
};

TEST_F(Signals, CommandsThatDoNotSaveDie) {
  Train("run", {"train.steps=3"});
  const std::string run = Directory("run").string();
  const Arguments commands[] = {{"generate", "--checkpoint", run},
                                {"tokenizer", "encode", "--model", tokenizer_.string()},
                                {"bench", "--config", config_.string(), "--wait-for-line"}};
  for (const Arguments& command : commands) {
    for (const int signal : {SIGTERM, SIGINT}) {
      const auto program = StartWaiting(command);
      SleepSeconds(0.3);
      EXPECT_TRUE(program->running()) << command[0];
      program->Signal(signal);
      const Outcome outcome = program->Wait();
      EXPECT_EQ(outcome.code, 1000 + signal) << command[0] << "\n" << outcome.err;
    }
  }
}

TEST_F(Signals, AHangupSavesAndStops) {
  Program run(scratch_, Pretrain("run", kEndless));
  ASSERT_TRUE(Trains(run));
  run.Signal(SIGHUP);
  run.Signal(SIGHUP);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_EQ(NewestStep("run"), LastLoggedStep("run"));
}

// A terminal sends ^C to the script and to the processes that it started.
TEST_F(Signals, TheLauncherTurnsCtrlCIntoACheckpoint) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Program run(scratch_, Pretrain("run", kEndless),
              {.wrapper = {SYNTRA_SOURCE_DIR "/launch/ranks", "2"}});
  ASSERT_TRUE(Trains(run));
  kill(-run.pid(), SIGINT);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_TRUE(outcome.Says("Saving, then stopping. Press ^C again to stop at once")) << outcome.err;
  EXPECT_NE(outcome.out.find("the same command continues"), std::string::npos) << outcome.out;
  EXPECT_EQ(NewestStep("run"), LastLoggedStep("run"));
}

TEST_F(Signals, TheLauncherPassesCodesOn) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Arguments launcher{SYNTRA_SOURCE_DIR "/launch/ranks", "2"};
  EXPECT_EQ(Run(Pretrain("run", {"train.steps=3"}), {.wrapper = launcher}).code, 0);
  EXPECT_EQ(Run(Pretrain("run", {"train.stepz=2"}), {.wrapper = launcher}).code, 2);
}

TEST_F(Signals, ADirectoryThatIsMovedEndsTheRun) {
  for (const int ranks : {1, 2}) {
    if (ranks > 1 && MpirunPath().empty()) break;
    const Path moved = Directory(fmt::format("moved-{}", ranks));
    Program run(scratch_, Pretrain("run", kEndless), {.ranks = ranks});
    ASSERT_TRUE(Trains(run));
    std::filesystem::rename(Directory("run"), moved);
    const Outcome outcome = run.Wait();
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_TRUE(outcome.Says("run was removed or moved while the run trained")) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(Directory("run")));
  }
}

TEST_F(Signals, ALockThatIsRemovedEndsTheRun) {
  Program first(scratch_, Pretrain("run", kEndless));
  ASSERT_TRUE(Trains(first));
  std::filesystem::remove(Directory("run") / "LOCK");
  const Outcome outcome = first.Wait();
  EXPECT_EQ(outcome.code, 8) << outcome.err;
  EXPECT_TRUE(outcome.Says("LOCK was removed or replaced while this run held it")) << outcome.err;
  EXPECT_EQ(NewestStep("run"), 0);
}

}  // namespace
}  // namespace syntra
