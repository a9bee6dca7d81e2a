// SPDX-License-Identifier: Apache-2.0
// The job scripts that `syntra slurm` prints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/file.h"
#include "tests/cli/shell.h"

namespace syntra {
namespace {

const std::string kSlurm =
    "cd '" SYNTRA_SOURCE_DIR "' && \"$syntra\" slurm --config configs/quickstart.textproto ";

// launch/slurm.sbatch shows what the command prints.
TEST(Slurm, TheScriptOfTheQuickStartIsAsPrinted) {
  const Outcome outcome = RunShell(kSlurm + "--nodes 2 --time 1:00:00");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::string printed = outcome.out;
  const std::string program = SYNTRA_BINARY;
  for (size_t at; (at = printed.find(program)) != printed.npos;) {
    printed.replace(at, program.size(), "build/src/cli/syntra");
  }
  EXPECT_EQ(printed, ReadWholeFile(SYNTRA_SOURCE_DIR "/launch/slurm.sbatch"));
}

TEST(Slurm, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "syntra slurm needs --time: "},
      {"--time 1:30", "--time: \"1:30\" is not a valid time limit; write HOURS:MINUTES:SECONDS"},
      {"--time 0", "\"0\" is less than a minute"},
      {"--time 0:00:59", "is less than a minute"},
      {"--time 1:60:00", "is not a valid time limit"},
      {"--time 99:99:99", "is not a valid time limit"},
      {"--time 1-24:00:00", "is not a valid time limit"},
      {"--time -1:00:00", "is not a valid time limit"},
      {"--time 1-12", "is not a valid time limit"},
      {"--time 5 --nodes 0", "--nodes: Value 0 not in range"},
      {"--time 5 --nodes 3", "train.batch_size 16 cannot be shared equally by 3 ranks"},
      {"--time 5 --partition 'a b'", "--partition: \"a b\" is not a name"},
      {"--time 5 --mpi pmi2", "--mpi: pmi2 not in {srun,mpirun}"},
      {"--time 5 --set train.stepz=1", "did you mean \"steps\"?"},
      {"--time 5 --set train.device=CUDA", "say with --gpus-per-node how many"},
      {"--time 5 --from-scratch", "--from-scratch is for tasks"},
      {"--time 5 --array-seeds 1", "--array-seeds: Value 1 not in range"},
      {"--time 5 --array-seeds 2 --set train.directory=seeds --set train.seed=9223372036854775806",
       "train.seed 9223372036854775806 is too large to count on from in a job script"},
      {"--time 5 --container ''", "--container: must not be empty"},
      // The product is 0 in 32 bits.
      {"--time 5 --nodes 65536 --ranks-per-node 65536",
       "are 4,294,967,296 ranks; at most 1,048,576 are allowed"},
      {"--time 5 --init-from runs/c4 --set checkpoint.initial=runs/d4",
       "--init-from names runs/c4, but checkpoint.initial runs/d4"},
      {"--time 5 --config /dev/stdin </dev/null",
       "/dev/stdin: the job reads its configuration when"},
      {"--time 5 --config nowhere.textproto", "cannot read nowhere.textproto"},
      {"--time 5 --from-scratch --set 'data.task={ classification { name: \"a\" train: \"a.tsv\" "
       "label: [\"x\", \"y\"] metric: \"bleu\" } }'",
       "metric: \"bleu\" does not judge such answers"}};
  for (const auto& [options, message] : cases) {
    const Outcome outcome = RunShell(kSlurm + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_TRUE(Has(outcome.err, message)) << options << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

struct SlurmCase {
  const char* options;
  std::vector<std::string> lines;  // of the script
};

std::vector<SlurmCase> SlurmCases() {
  return {
      {"--nodes 4 --partition p --account a --exclude bad[1-2] --cpus-per-rank 8 --ranks-per-node "
       "2",
       {"#SBATCH --nodes=4\n", "#SBATCH --ntasks-per-node=2\n", "#SBATCH --cpus-per-task=8\n",
        "#SBATCH --partition=p\n", "#SBATCH --account=a\n", "#SBATCH --exclude=bad[1-2]\n",
        " --cpus-per-task=8 \"${comm"}},
      {"--nodes 2 --gpus-per-node 4 --container my.sif",
       {"#SBATCH --gpus-per-node=4\n", "#SBATCH --ntasks-per-node=4\n", "#SBATCH --exclusive\n",
        "command=(apptainer exec --nv my.sif syntra pretrain\n"}},
      {"--set 'train.directory=runs/two words: 50%'", {"#SBATCH --job-name=two-words--50-\n"}},
      {"--nodes 2 --mpi mpirun", {"mpirun --bind-to none -n 2 \"${command[@]}\" &\n"}},
      // Not the quick start's directory, in which there may be its run.
      {"--array-seeds 3 --set train.directory=seeds --set train.seed=40",
       {"#SBATCH --array=0-2\n", "seed=$((40 + SLURM_ARRAY_TASK_ID))\n",
        "--set train.directory=seeds/seed-\"$seed\")", "--set data.prepared=seeds/prepared\n"}},
      {"--array-seeds 2 --init-from runs/base --set train.directory=seeds",
       {"--set checkpoint.initial_kept_in=seeds/start\n"}}};
}

TEST(Slurm, ScriptsSayWhatWasAskedFor) {
  for (const auto& [options, lines] : SlurmCases()) {
    const Outcome outcome = RunShell(kSlurm + "--time 12:00:00 " + options);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& line : lines) EXPECT_TRUE(Has(outcome.out, line)) << outcome.out;
  }
}

TEST(Slurm, ScriptsAreClean) {
  if (!IsInstalled("shellcheck")) GTEST_SKIP() << "shellcheck is not installed";
  for (const SlurmCase& each : SlurmCases()) {
    const Outcome check =
        RunShell(kSlurm + "--time 12:00:00 " + each.options + " | shellcheck --shell=bash -");
    EXPECT_EQ(check.code, 0) << check.out;
  }
}

// Runs the script of a job whose ranks end with `code`, with stand-ins for Slurm's commands;
// e2e_slurm_test has the real ones.
Outcome RunJob(int code, const std::string& squeue, const std::string& scontrol) {
  return RunShell(fmt::format(
      R"(bin=$(mktemp -d); trap 'rm -rf "$bin"' EXIT
stand_in() {{ printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"; chmod +x "$bin/$1"; }}
stand_in squeue '{1}'
stand_in sleep exit
stand_in scontrol '{2}'
stand_in srun 'printf "<%s>" "$@" "ends $SLURM_JOB_END_TIME"; exit {0}'
{3} --time 5 --set "train.directory=runs/it's \$HOME" >"$bin/script"
PATH=$bin:$PATH SLURM_JOB_ID=17 SLURM_JOB_END_TIME=1700000000 bash "$bin/script")",
      code, squeue, scontrol, kSlurm));
}

TEST(Slurm, ScriptsQueueAgainWhatCanContinue) {
  struct Case {
    int code;
    std::string squeue;
    bool queued_again;
  };
  const std::string running = "echo RUNNING", completing = "echo COMPLETING";
  // Slurm may be busy, which is no reason to queue a cancelled job again, or not answer at all.
  const std::string busy = R"(echo >>"$0.asked"; test $(wc -l <"$0.asked") -ge 20 || exit 1; )";
  const Case cases[] = {{0, running, false},
                        {2, running, false},
                        {6, running, false},
                        {7, running, true},
                        {75, running, true},
                        {137, running, true},
                        {138, running, true},
                        {205, running, true},
                        {14, running, true},
                        {75, completing, false},
                        {75, busy + completing, false},
                        {75, "echo COMPLETING; exit 1", true}};
  for (const auto& [code, squeue, queued_again] : cases) {
    const Outcome outcome = RunJob(code, squeue, R"(echo "scontrol $*")");
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(Has(outcome.out, "<--set><train.directory=runs/it's $HOME>")) << outcome.out;
    EXPECT_EQ(Has(outcome.out, "scontrol requeue 17"), queued_again) << code << " " << squeue;
  }
}

// Slurm's own value is that of the job's start; squeue knows of a limit that was changed since
// then.
TEST(Slurm, ScriptsKeepSlurmsEndTimeWhereSqueueDoesNotAnswer) {
  for (const auto& [squeue, end] :
       {std::pair{"echo 1800000000", "1800000000"}, std::pair{"exit 1", "1700000000"}}) {
    const Outcome outcome = RunJob(0, squeue, "exit 1");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(Has(outcome.out, std::string("<ends ") + end + ">")) << outcome.out;
  }
}

TEST(Slurm, ScriptsKeepTheirCodeWhereTheJobIsNotQueuedAgain) {
  const Outcome outcome = RunJob(75, "echo RUNNING", "echo refused >&2; exit 1");
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_TRUE(Has(outcome.err, "refused\nSlurm refuses to queue the job again")) << outcome.err;
}

}  // namespace
}  // namespace syntra
