// SPDX-License-Identifier: Apache-2.0
// Jobs of a real Slurm, by the scripts of `syntra slurm`: whatever ends them, they are queued again
// and continue by themselves to the bits of a run that was never stopped.
#include <signal.h>

#include <cstdio>

#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

// Slurm on this machine, with two nodes of one core (tests/launch/slurm_cluster), until it is
// destroyed.
class SlurmCluster {
 public:
  explicit SlurmCluster(Path folder) : folder_(std::move(folder)) {
    const std::string start = SYNTRA_SOURCE_DIR "/tests/launch/slurm_cluster '";
    keeps_running_ = popen((start + folder_.string() + "'").c_str(), "w");
    EXPECT_TRUE(WaitUntil([&] { return Has("ready") || Has("missing") || Has("failed"); }));
  }
  ~SlurmCluster() { pclose(keeps_running_); }
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  // Why there is none; empty if there is one.
  std::string missing() const { return ReadOwnFile(folder_ / "missing", 1000).value_or(""); }
  bool is_ready() const { return Has("ready"); }
  const Path& folder() const { return folder_; }

  // What one of Slurm's commands prints.
  std::string Ask(const std::string& command) const {
    const std::string whole = fmt::format(
        "export SLURM_CONF='{}/slurm.conf' PATH=$PATH:/usr/sbin; {}", folder_.string(), command);
    FILE* pipe = popen(whole.c_str(), "r");
    std::string output;
    char buffer[4096];
    while (size_t count = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, count);
    pclose(pipe);
    return std::string(StripSpace(output));
  }

 private:
  bool Has(const char* name) const { return std::filesystem::exists(folder_ / name); }

  Path folder_;
  FILE* keeps_running_;
};

class Slurm : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    cluster_.emplace(scratch_ / "cluster");
    if (!cluster_->missing().empty()) GTEST_SKIP() << cluster_->missing();
    ASSERT_TRUE(cluster_->is_ready()) << "Slurm does not start; its logs are above";
    // Open MPI refuses root; containers forbid reading another process's memory.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
    steps_ = scratch_ / "steps.textproto";
    SetSteps(1000000);
  }

  // What still runs would write into the directory that is removed.
  void TearDown() override {
    cluster_.reset();
    TinyRun::TearDown();
  }

  // A job reads its configuration again each time that it begins.
  void SetSteps(int64_t steps) const {
    ReplaceFileDurably(steps_, fmt::format("train {{ steps: {} }}\n", steps));
  }

  // Forgets the runs so far.
  void StartAnew() const {
    for (const char* run : {"run", "straight"}) RemoveAll(Directory(run));
    SetSteps(1000000);
  }

  // EXACT, so that two ranks in the cluster are compared with one.
  Arguments Settings() const {
    return {"optimizer.schedule.kind=CONSTANT", "train.reduction=EXACT", "train.micro_batch_size=4",
            "checkpoint.every=0", "evaluation.every=10"};
  }

  // Writes the script of a job that trains the run "run" on both nodes and submits it; returns its
  // number.
  std::string Submit(const Arguments& options = {}, const std::string& sbatch_options = "") const {
    Arguments words = Pretrain("run", Settings());
    words[0] = "slurm";
    words.insert(words.end(), {"--config", steps_.string(), "--nodes", "2"});
    words.insert(words.end(), options.begin(), options.end());
    if (std::ranges::find(options, "--time") == options.end()) {
      words.insert(words.end(), {"--time", "60"});
    }
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    // How long the others may go on after a rank was killed.
    constexpr std::string_view kWait = "--wait=30";
    std::string script = outcome.out;
    const size_t wait = script.find(kWait);
    EXPECT_EQ(wait != script.npos, script.find("srun --mpi") != script.npos) << script;
    if (wait != script.npos) script.replace(wait, kWait.size(), "--wait=5");
    ReplaceFileDurably(scratch_ / "job.sbatch", script);
    return cluster_->Ask(fmt::format("cd '{}' && sbatch --parsable {} job.sbatch 2>&1",
                                     scratch_.string(), sbatch_options));
  }

  // A field of what Slurm says of a job.
  std::string Field(const std::string& job, const std::string& name) const {
    const std::string all = " " + cluster_->Ask("scontrol --oneliner show job " + job);
    const size_t at = all.find(" " + name + "=");
    if (at == all.npos) return "";
    const size_t begin = at + name.size() + 2;
    return all.substr(begin, all.find(' ', begin) - begin);
  }
  bool WaitForField(const std::string& job, const std::string& name,
                    const std::string& value) const {
    return WaitUntil([&] { return Field(job, name) == value; });
  }
  std::string LogOf(const std::string& job) const {
    return ReadWholeFile(scratch_ / fmt::format("run-{}.log", job));
  }
  bool Trains() const {
    return WaitUntil([&] { return LastLoggedStep("run") >= 3; });
  }
  // Kills the processes of jobs that have this in their environment.
  void KillWhere(const std::string& variable) const {
    cluster_->Ask(
        "kill -KILL $(grep -slzxF '" + variable +
        "' $(grep -slzxF \"SLURM_CONF=$SLURM_CONF\" /proc/[0-9]*/environ) | cut -d / -f 3)");
  }
  void LetJobsBegin(bool may) const {
    cluster_->Ask(fmt::format("scontrol update PartitionName=low State={}", may ? "UP" : "DOWN"));
  }

  // The job waits in the queue again, having saved its last step. When `begin` has let it begin, it
  // runs to its end.
  template <typename Begin>
  void ExpectContinues(const std::string& job, const Begin& begin, bool saved = true) {
    ASSERT_TRUE(WaitForField(job, "JobState", "PENDING")) << LogOf(job);
    EXPECT_EQ(Field(job, "Restarts"), "1");
    if (saved) {
      EXPECT_EQ(NewestStep("run"), LastLoggedStep("run")) << LogOf(job);
    }
    const int64_t steps = LastLoggedStep("run") + 5;
    SetSteps(steps);
    begin();
    ASSERT_TRUE(WaitUntil([&] {
      const std::string state = Field(job, "JobState");
      return state == "COMPLETED" || state == "FAILED";
    }));
    const std::string log = LogOf(job);
    EXPECT_EQ(Field(job, "JobState"), "COMPLETED") << log;
    EXPECT_NE(log.find("continuing from"), log.npos) << log;
    Arguments straight = Settings();
    straight.push_back(fmt::format("train.steps={}", steps));
    Train("straight", straight);
    EXPECT_EQ(Trace(Directory("run"), steps), Trace(Directory("straight"), steps));
  }

  std::optional<SlurmCluster> cluster_;
  Path steps_;
};

TEST_F(Slurm, StopsBeforeTheTimeLimitAndContinues) {
  // By default Slurm's own signal comes first where the limit is a minute.
  const std::string job = Submit({"--time", "1"}, "--signal=B:CONT@1");
  ASSERT_TRUE(Trains());
  LetJobsBegin(false);
  ExpectContinues(job, [&] { LetJobsBegin(true); });
  EXPECT_NE(LogOf(job).find("the job ends in"), std::string::npos) << LogOf(job);
}

TEST_F(Slurm, ContinuesAfterASignal) {
  for (const char* mpi : {"srun", "mpirun"}) {
    if (mpi == std::string("mpirun") && MpirunPath().empty()) break;
    StartAnew();
    const std::string job = Submit({"--mpi", mpi});
    ASSERT_TRUE(Trains()) << LogOf(job);
    LetJobsBegin(false);
    // What Slurm does for --signal=B:USR1@...
    cluster_->Ask("scancel --batch --signal=USR1 " + job);
    ExpectContinues(job, [&] { LetJobsBegin(true); });
  }
}

// Without grace Slurm sends SIGTERM twice and queues the job again by itself. With grace the job
// counts as running until the script queues it again.
TEST_F(Slurm, ContinuesWhenItWasPreempted) {
  for (const int grace : {0, 600}) {
    StartAnew();
    cluster_->Ask(fmt::format("scontrol update PartitionName=low GraceTime={}", grace));
    const std::string job = Submit();
    ASSERT_TRUE(Trains()) << LogOf(job);
    const Path over = scratch_ / fmt::format("over-{}", grace);
    const std::string other =
        cluster_->Ask(fmt::format("sbatch --parsable --partition=high --nodes=2 --output=/dev/null "
                                  "--wrap='while [[ ! -e {} ]]; do sleep 0.1; done'",
                                  over.string()));
    ASSERT_TRUE(WaitForField(other, "JobState", "RUNNING"));
    ExpectContinues(job, [&] { ReplaceFileDurably(over, ""); });
  }
}

TEST_F(Slurm, ContinuesWhenANodeWasLost) {
  const std::string job = Submit();
  ASSERT_TRUE(Trains()) << LogOf(job);
  // As if its power failed: the daemon of the node, and all that it started.
  cluster_->Ask("kill -KILL " + ReadWholeFile(cluster_->folder() / "slurmd-b.pid"));
  KillWhere("SLURMD_NODENAME=b");
  const auto begin = [&] { cluster_->Ask("slurmd -N b </dev/null >/dev/null 2>&1"); };
  ExpectContinues(job, begin, /*saved=*/false);
}

TEST_F(Slurm, ContinuesWhenARankWasKilled) {
  const std::string job = Submit();
  ASSERT_TRUE(Trains()) << LogOf(job);
  LetJobsBegin(false);
  KillWhere("SLURM_PROCID=1");
  ExpectContinues(
      job, [&] { LetJobsBegin(true); }, /*saved=*/false);
}

TEST_F(Slurm, ACancelledJobSavesAndStaysAway) {
  const std::string job = Submit();
  ASSERT_TRUE(Trains()) << LogOf(job);
  cluster_->Ask("scancel " + job);
  ASSERT_TRUE(WaitForField(job, "JobState", "CANCELLED")) << LogOf(job);
  ASSERT_TRUE(WaitUntil([&] { return NewestStep("run") == LastLoggedStep("run"); })) << LogOf(job);
  EXPECT_EQ(Field(job, "Restarts"), "0");
}

TEST_F(Slurm, AMistakeIsNotQueuedAgain) {
  const std::string job = Submit();
  ReplaceFileDurably(steps_, "train { steps: -1 }\n");
  ASSERT_TRUE(WaitForField(job, "JobState", "FAILED"));
  EXPECT_EQ(Field(job, "ExitCode"), "2:0") << LogOf(job);
  EXPECT_EQ(Field(job, "Restarts"), "0");
}

TEST_F(Slurm, AnArrayTrainsEachSeed) {
  SetSteps(5);
  const std::string array = Submit({"--array-seeds", "2", "--set", "train.seed=7"});
  for (const char* seed : {"7", "8"}) {
    const std::string name = std::string("run/seed-") + seed,
                      straight = std::string("seed-") + seed;
    ASSERT_TRUE(WaitUntil([&] { return HasCheckpoint(name, 5); })) << seed;
    Arguments settings = Settings();
    settings.insert(settings.end(), {"train.steps=5", std::string("train.seed=") + seed});
    Train(straight, settings);
    EXPECT_TRUE(WaitUntil(
        [&] { return Field(array + (seed[0] == '7' ? "_0" : "_1"), "JobState") == "COMPLETED"; }));
    EXPECT_EQ(Trace(Directory(name), 5), Trace(Directory(straight), 5));
  }
}

}  // namespace
}  // namespace syntra
