// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are written beside training.
#include <signal.h>

#include <regex>

#include "checkpoint/recover.h"
#include "tests/base/strace.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

// The system calls by which a save changes names and contents, all of which it makes.
constexpr const char* kCalls[] = {"fsync", "mkdir", "openat", "rename", "unlinkat", "write"};

// The rank stops as its thread begins to write.
StartOptions Stopping(int ranks = 1, int rank = 0) {
  const std::string stop = fmt::format("SYNTRA_FAILPOINT=freeze_saving@1-1000000:{}", rank);
  return {.ranks = ranks, .environment = {stop}};
}

bool IsStopped(pid_t process) {
  try {
    const std::string status = ReadWholeFile(fmt::format("/proc/{}/stat", process));
    return status.substr(status.rfind(')')).starts_with(") T");
  } catch (const Error&) {
    return false;  // it has ended
  }
}

// Waits until the program or one of its ranks has stopped: its process; -1 if the run ends instead.
pid_t StoppedProcess(const Program& run) {
  pid_t stopped = -1;
  WaitUntil([&] {
    std::vector<pid_t> processes = run.RankPids();
    processes.push_back(run.pid());
    for (const pid_t process : processes) {
      if (IsStopped(process)) stopped = process;
    }
    return stopped > 0 || !run.running();
  });
  return stopped;
}

pid_t SavingThread(pid_t process) {
  for (const Path& task : ListDirectory(fmt::format("/proc/{}/task", process))) {
    if (ReadWholeFile(task / "comm") == "save\n") return std::stoi(task.filename());
  }
  return -1;
}

class SavesBesideTraining : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
    Train("straight", settings_);  // prepares the data, too
  }

  // What does this to the program's system calls of a name.
  StartOptions With(const std::string& name, const std::string& effect) const {
    return {.wrapper = {"strace", "-f", "-o", scratch_ / "trace", "-e", "trace=" + name, "-e",
                        "inject=" + name + ":" + effect}};
  }

  struct Fault {
    std::string name;  // of the system call
    int call = 1;      // of the thread's calls of this name
    std::string effect;
  };

  // Lets a process that has stopped go on, with this fault in the thread that writes the
  // checkpoint. Waits until the thread ends and returns whether there was such a call.
  bool Inject(pid_t process, const Fault& fault) const {
    const Path trace = scratch_ / "trace";
    Program tracer(
        scratch_,
        {"-p", std::to_string(SavingThread(process)), "-o", trace, "-e", "trace=" + fault.name,
         "-e", fmt::format("inject={}:{}:when={}", fault.name, fault.effect, fault.call)},
        {.program = "strace"});
    const auto attached = [&] { return tracer.Errors().find("attached") != std::string::npos; };
    EXPECT_TRUE(WaitUntil([&] { return attached() || !tracer.running(); }));
    kill(process, SIGCONT);
    tracer.Wait();
    const std::string calls = ReadWholeFile(trace);
    return calls.find("INJECTED") != std::string::npos ||
           calls.find("killed by SIGKILL") != std::string::npos;
  }

  // The step of the newest checkpoint that is whole; -1 if there is none.
  int64_t NewestValid() const {
    const auto found = FindNewestValid(Directory("run") / "checkpoints", Recovery::kReadOnly);
    return found ? found->info().step : -1;
  }

  // The run's next save meets this fault, and the one after it none. Expects that a failure is
  // told, with the writer's name, and makes no harm. Returns whether there was such a call.
  bool FailASave(const Program& run, const Fault& fault, const std::string& writer,
                 int* failed) const {
    bool happened = false;
    const auto expect = [&] {
      SCOPED_TRACE(fmt::format("{} call {}", fault.name, fault.call));
      pid_t process = StoppedProcess(run);
      ASSERT_GT(process, 0) << run.Errors();
      const int64_t step = NewestStep("run") + 2;
      happened = Inject(process, fault);
      process = StoppedProcess(run);
      ASSERT_GT(process, 0) << run.Errors();
      const bool saved = NewestStep("run") == step;
      const std::string told =
          fmt::format("checkpoint at step {} failed (1 of 3 in a row): {}", step, writer);
      // The launcher passes lines on when it comes to it.
      EXPECT_TRUE(WaitUntil([&] { return saved || run.Errors().find(told) != std::string::npos; }))
          << run.Errors();
      ASSERT_EQ(NewestValid(), saved ? step : step - 2);
      *failed += !saved;
      kill(process, SIGCONT);
      ASSERT_TRUE(WaitUntil([&] { return NewestStep("run") == step + 2; })) << run.Errors();
    };
    expect();
    return happened;
  }

  // Trains to the end what faults have left.
  void ExpectEndsAsStraight(Arguments settings, int ranks = 1) const {
    settings.push_back("checkpoint.every=0");
    std::filesystem::remove(Directory("run") / "STATUS");
    Train("run", settings, {.ranks = ranks});
    RemoveAll(Directory("straight"));
    Train("straight", settings, {.ranks = ranks});
    EXPECT_EQ(Trace(Directory("run"), 400), Trace(Directory("straight"), 400));
    for (const Path& path : ListDirectory(Directory("run") / "checkpoints")) {
      EXPECT_TRUE(path.filename().string().starts_with("step-")) << path;
    }
  }

  const Arguments settings_{"train.steps=6", "checkpoint.every=2", "evaluation.every=0"};
  // Has more steps than all faults take.
  const Arguments long_{"train.steps=400", "checkpoint.every=2", "evaluation.every=0"};
  const Arguments shared_{"train.steps=400", "checkpoint.every=2", "evaluation.every=0",
                          "train.sharding=OPTIMIZER_STATE"};
};

TEST_F(SavesBesideTraining, TheFilesAreTheSame) {
  Train("waits", {"train.steps=6", "checkpoint.every=2", "evaluation.every=0",
                  "checkpoint.asynchronous=false"});
  for (const int64_t step : {4, 6}) {
    EXPECT_EQ(Trace(Directory("straight"), step), Trace(Directory("waits"), step));
  }
}

// Each file is on disk only after a twentieth of a second, in which the other steps are made.
TEST_F(SavesBesideTraining, StepsGoOnMeanwhile) {
  for (const int ranks : MpirunPath().empty() ? std::vector{1} : std::vector{1, 2}) {
    StartOptions options = With("fsync", "delay_enter=50000:when=1+");
    options.ranks = ranks;
    const Outcome outcome =
        Run(Pretrain("run", {"train.steps=8", "checkpoint.every=3", "train.log_every=1",
                             "evaluation.every=0", "train.sharding=OPTIMIZER_STATE"}),
            options);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto at = [&](const std::string& text) { return outcome.err.find(text); };
    EXPECT_LT(at("step 5/8"), at("step-0000000003 (")) << outcome.err;
    // One at a time, in order.
    EXPECT_LT(at("step-0000000003 ("), at("step-0000000006 ("));
    EXPECT_LT(at("step-0000000006 ("), at("step-0000000008 ("));
    RemoveAll(Directory("run"));
  }
}

// The save of step 2 waits twelve seconds for that of step 1. With the run's first save that makes
// three, and two more are to come.
TEST_F(SavesBesideTraining, TheEtaCountsHowLongASaveWaitsForTheOneBefore) {
  const Outcome outcome =
      Run(Pretrain("run", {"train.steps=5", "checkpoint.every=1", "train.log_every=1"}),
          {.environment = {"SYNTRA_FAILPOINT=slow_saving@1"}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::smatch left;
  ASSERT_TRUE(std::regex_search(outcome.err, left, std::regex("ETA (\\d+)(s|m).* step 3/5 ")))
      << outcome.err;
  EXPECT_TRUE(left[2] == "m" || std::stoi(left[1]) >= 8) << outcome.err;
}

// Whether it was to make batches or to save. The first thread is the watchdog's, without which no
// run begins.
TEST_F(SavesBesideTraining, AThreadThatIsRefusedEndsNothing) {
  int refused = 0;
  for (int thread = 2;; ++thread) {
    SCOPED_TRACE(fmt::format("thread {}", thread));
    RemoveAll(Directory("run"));
    const Outcome outcome = Run(Pretrain("run", settings_),
                                With("clone3", fmt::format("error=EAGAIN:when={}", thread)));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(Trace(Directory("run"), 6), Trace(Directory("straight"), 6));
    if (ReadWholeFile(scratch_ / "trace").find("INJECTED") == std::string::npos) break;
    EXPECT_TRUE(outcome.Says("cannot start a thread")) << outcome.err;
    ++refused;
  }
  EXPECT_GE(refused, 8);  // six steps and two saves
}

// After a kill the old checkpoint or the new one is the newest, whole. The next start continues
// from it to the next kill: only if every one of them continues rightly is the end that of a run
// that was never stopped.
TEST_F(SavesBesideTraining, KilledAtEverySystemCall) {
  int killed = 0;
  for (const std::string name : kCalls) {
    for (int call = 1;; ++call) {
      SCOPED_TRACE(fmt::format("{} call {}", name, call));
      // Three starts without a checkpoint between them are refused; that guard has its own test.
      std::filesystem::remove(Directory("run") / "STATUS");
      Program run(scratch_, Pretrain("run", long_), Stopping());
      ASSERT_GT(StoppedProcess(run), 0) << run.Errors();
      const int64_t before = NewestStep("run");
      const bool kills = Inject(run.pid(), {name, call, "signal=KILL"});
      run.Kill();
      const int64_t after = NewestStep("run");
      EXPECT_TRUE(after == before + 2 || (kills && after == before)) << before << " to " << after;
      ASSERT_EQ(NewestValid(), after);
      if (!kills) break;
      ++killed;
    }
  }
  EXPECT_GE(killed, 30);
  RecordProperty("killed", killed);
  ExpectEndsAsStraight(long_);
}

// Every other save meets a disk that is full for one call. Whatever that call was for, the run says
// so or has a checkpoint all the same, and the next save makes up for it.
TEST_F(SavesBesideTraining, ADiskThatIsFullAtEverySystemCall) {
  Program run(scratch_, Pretrain("run", long_), Stopping());
  int failed = 0;
  for (const std::string name : kCalls) {
    bool happened = true;
    for (int call = 1; happened; ++call) {
      happened = FailASave(run, {name, call, "error=ENOSPC"}, "", &failed);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(failed, 15);
  RecordProperty("failed", failed);
  run.Kill();
  ExpectEndsAsStraight(long_);
}

// What could not be saved beside training is saved where the run stops, if only at the same step.
TEST_F(SavesBesideTraining, AStopSavesWhatHasFailed) {
  StartOptions options = Stopping();
  options.environment.front() += ",stop_evaluation@2";
  Program run(scratch_, Pretrain("run", {"checkpoint.every=2", "evaluation.every=2"}), options);
  const pid_t process = StoppedProcess(run);
  ASSERT_GT(process, 0) << run.Errors();
  EXPECT_TRUE(Inject(process, {"mkdir", 1, "error=ENOSPC"})) << run.Errors();
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_TRUE(outcome.Says("checkpoint at step 2 failed (1 of 3 in a row)")) << outcome.err;
  EXPECT_EQ(NewestValid(), 2);
}

// Another run may have begun while this one writes.
TEST_F(SavesBesideTraining, NothingIsCommittedWithoutTheLock) {
  Program run(scratch_, Pretrain("run", long_), Stopping());
  const pid_t process = StoppedProcess(run);
  ASSERT_GT(process, 0) << run.Errors();
  std::filesystem::remove(Directory("run") / "LOCK");
  kill(process, SIGCONT);
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.code, 8) << outcome.err;
  EXPECT_EQ(NewestStep("run"), 0);
}

// Where ranks share the optimizer's state, each writes its part, and rank 0 commits what all have
// written. Any of them is killed in one of these calls.
TEST_F(SavesBesideTraining, OneOfTwoWritersIsKilled) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  struct Kill {
    int rank;
    Fault at;
    bool commits = false;  // in the thread that commits, which rank 0 begins next
  };
  const std::string kills = "signal=KILL";
  for (const Kill& each : {Kill{1, {"openat", 1, kills}}, Kill{1, {"pwrite64", 1, kills}},
                           Kill{1, {"pwrite64", 30, kills}}, Kill{1, {"fsync", 1, kills}},
                           Kill{0, {"pwrite64", 30, kills}}, Kill{0, {"fsync", 1, kills}},
                           Kill{0, {"openat", 4, kills}, true}, Kill{0, {"write", 2, kills}, true},
                           Kill{0, {"rename", 1, kills}, true}}) {
    SCOPED_TRACE(fmt::format("rank {}, {} call {}", each.rank, each.at.name, each.at.call));
    std::filesystem::remove(Directory("run") / "STATUS");
    Program run(scratch_, Pretrain("run", shared_), Stopping(2, each.rank));
    pid_t process = StoppedProcess(run);
    ASSERT_GT(process, 0) << run.Errors();
    const int64_t before = NewestStep("run");
    if (each.commits) {
      kill(process, SIGCONT);
      ASSERT_TRUE(WaitUntil([&] { return !IsStopped(process); }));
      process = StoppedProcess(run);
    }
    EXPECT_TRUE(Inject(process, each.at)) << run.Errors();
    run.Kill();
    EXPECT_EQ(NewestValid(), NewestStep("run"));
    EXPECT_TRUE(NewestValid() == before || (each.commits && NewestValid() == before + 2));
  }
  ExpectEndsAsStraight(shared_, 2);
}

// What fails on one rank fails for all, and is told once.
TEST_F(SavesBesideTraining, OneOfTwoWritersMeetsAFullDisk) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Program run(scratch_, Pretrain("run", shared_), Stopping(2, 1));
  int failed = 0;
  for (const Fault& fault :
       {Fault{"openat", 1, "error=ENOSPC"}, Fault{"pwrite64", 1, "error=ENOSPC"},
        Fault{"pwrite64", 30, "error=ENOSPC"}, Fault{"fsync", 1, "error=ENOSPC"}}) {
    EXPECT_TRUE(FailASave(run, fault, "rank 1 on ", &failed));
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(failed, 4);
  run.Kill();
  ExpectEndsAsStraight(shared_, 2);
}

// An error that all ranks have ends the job once what was begun is saved, and rank 0 has told it,
// however long the disk takes.
TEST_F(SavesBesideTraining, AreFinishedBeforeAnErrorOfAllRanks) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  // The first rename of every thread takes seven seconds, longer than other ranks wait for rank 0.
  StartOptions slow = With("rename", "delay_enter=7000000:when=1");
  slow.ranks = 2;
  slow.environment = {"SYNTRA_FAILPOINT=wrong_parameter@3:1"};
  const Outcome outcome =
      Run(Pretrain("run", {"checkpoint.every=2", "train.compare_replicas_every=4"}), slow);
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_TRUE(outcome.Says("no majority agrees: rank 0 on ")) << outcome.err;
  EXPECT_EQ(NewestValid(), 2) << outcome.err;
}

// A state that is not finite is found by a thread of any rank that has some of it, and ends the
// run.
TEST_F(SavesBesideTraining, AFailureEndsTheRunWhereItMust) {
  for (const int ranks : MpirunPath().empty() ? std::vector{1} : std::vector{1, 2}) {
    const Outcome outcome =
        Run(Pretrain("run", {"train.steps=100000", "checkpoint.every=2", "evaluation.every=0",
                             "optimizer.schedule.rate=1e308", "train.sharding=OPTIMIZER_STATE"}),
            {.ranks = ranks});
    EXPECT_EQ(outcome.code, 6) << outcome.err;
    EXPECT_TRUE(outcome.Says("is not finite and is not saved")) << outcome.err;
    EXPECT_EQ(NewestStep("run"), 0);
    RemoveAll(Directory("run"));
  }
}

// One rank fails in step 3, while rank 0 writes the checkpoint of step 2 for longer than the others
// wait for each other in a step.
class SlowSaves : public TinyRun {
 protected:
  struct Case {
    int ranks, fails;
    std::string sharding = "NONE";
    int64_t newest = 2;
  };
  static std::string NameOf(const Case& each) {
    return fmt::format("{}-{}-{}", each.sharding, each.ranks, each.fails);
  }
  std::unique_ptr<Program> Start(const Case& each) const {
    return std::make_unique<Program>(
        scratch_, Pretrain(NameOf(each), {"checkpoint.every=2", "train.sharding=" + each.sharding}),
        StartOptions{.ranks = each.ranks,
                     .environment = {"SYNTRA_WATCHDOG=step=5,first_steps=5,gather=0.5",
                                     fmt::format("SYNTRA_FAILPOINT=slow_saving@2:0,fail_step@3:{}",
                                                 each.fails)}});
  }
};

// What all ranks are needed for is not finished, only the own part.
TEST_F(SlowSaves, AreFinishedBeforeAnErrorOfOneRank) {
  std::vector<Case> cases{{1, 0}};
  if (!MpirunPath().empty()) {
    cases.insert(cases.end(), {{2, 0}, {2, 1}, {2, 0, "OPTIMIZER_STATE", 0}});
  }
  Train("prepares", {"train.steps=1", "optimizer.schedule.warmup_steps=0"});
  std::vector<std::unique_ptr<Program>> jobs;  // all at once: they wait, mostly
  for (const Case& each : cases) jobs.push_back(Start(each));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string name = NameOf(cases[i]);
    const Outcome outcome = jobs[i]->Wait();
    SCOPED_TRACE(fmt::format("{}\n{}", name, outcome.err));
    EXPECT_EQ(outcome.code, 4);
    EXPECT_TRUE(outcome.Says("error: a failure on purpose"));
    EXPECT_FALSE(outcome.Says("hangs in"));
    EXPECT_EQ(NewestStep(name), cases[i].newest);
    // It is told before the checkpoint is there.
    const std::string log =
        ReadWholeFile(Directory(name) / fmt::format("log/rank-{:04}.log", cases[i].fails));
    const size_t told = log.find("is finished before the run ends by this error: a failure on");
    EXPECT_NE(told, log.npos) << log;
    EXPECT_EQ(log.find("step-0000000002 (") < told, false) << log;
    // The next start goes on from there.
    Train(name, {"checkpoint.every=2", "train.sharding=" + cases[i].sharding},
          {.ranks = cases[i].ranks});
    EXPECT_FALSE(Exists(Directory(name) / "log/ending"));
  }
}

}  // namespace
}  // namespace syntra
