// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace syntra {
namespace {

// Seconds before the end of a job at which Slurm sends USR1; it may be a minute earlier. The
// program stops by itself in time. The signal is for a limit that is changed while it runs, and for
// clusters that send it where they preempt.
constexpr int kSignalSeconds = 30;

constexpr const char* kWait = R"(
# A signal to this shell is a request to save and stop; the launcher passes it on to every rank.
ranks=
trap 'kill -USR1 "$ranks" 2>/dev/null || true' USR1 TERM

)";

constexpr const char* kEnd = R"(ranks=$!
while kill -0 "$ranks" 2>/dev/null; do wait "$ranks" || true; done
code=0
wait "$ranks" || code=$?

# 75: stopped on request; 7: a rank hung; 137: one was killed; 141 and 205: mpirun lost a node; 14: a rank of Open
# MPI 5 lost its connection to another one. The same command continues, so the job is queued again. One that was
# cancelled is not RUNNING any more, nor is one that Slurm itself has queued again. Where Slurm does not say, it
# decides itself whether the job can be queued.
if [[ $code =~ ^(7|14|75|137|141|205)$ ]]; then
  state=unknown
  for _ in {1..30}; do  # a busy Slurm may not answer at once
    state=$(squeue --noheader --jobs="$job" --format=%T) && break
    state=unknown
    sleep 2
  done
  if [[ $state == RUNNING || $state == unknown ]]; then
    echo "The ranks ended with code $code; the job is queued again and continues."
    scontrol requeue "$job" || echo "Slurm refuses to queue the job again; submit it to continue." >&2
  fi
fi
exit "$code"
)";

std::string Options(const SlurmJob& job) {
  std::string text;
  const auto add = [&](const char* name, const auto& value) {
    text += fmt::format("#SBATCH --{}={}\n", name, value);
  };
  add("job-name", job.name);
  add("time", job.time);
  if (!job.partition.empty()) add("partition", job.partition);
  if (!job.account.empty()) add("account", job.account);
  if (!job.exclude.empty()) add("exclude", job.exclude);
  add("nodes", job.nodes);
  add("ntasks-per-node", job.ranks_per_node);
  if (job.gpus_per_node > 0) add("gpus-per-node", job.gpus_per_node);
  if (job.cpus_per_rank > 0) {
    add("cpus-per-task", job.cpus_per_rank);
  } else {
    text += "#SBATCH --exclusive\n#SBATCH --mem=0\n";
  }
  if (job.seeds.count > 0) add("array", fmt::format("0-{}", job.seeds.count - 1));
  add("output", job.seeds.count > 0 ? "%x-%A_%a.log" : "%x-%j.log");
  text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  add("signal", fmt::format("B:USR1@{}", kSignalSeconds));
  return text;
}

// The words of the command as an array of the shell, an option with its value on a line.
std::string CommandLines(const SlurmJob& job) {
  std::string text = "command=(";
  for (size_t i = 0; i < job.command.size(); ++i) {
    const std::string& word = job.command[i];
    if (i > 0) text += word == "--config" || word == "--set" ? "\n  " : " ";
    text += ShellWord(word);
  }
  if (job.seeds.count > 0) {
    text += "\n  --set \"train.seed=$seed\"\n  --set " +
            ShellWord("train.directory=" + job.seeds.directory + "/seed-") + "\"$seed\"";
  }
  return text + ")\n";
}

std::string Launcher(const SlurmJob& job) {
  if (!job.mpirun.empty()) {
    return fmt::format("{} --bind-to none -n {}", ShellWord(job.mpirun), job.ranks());
  }
  const std::string cpus =
      job.cpus_per_rank > 0 ? fmt::format(" --cpus-per-task={}", job.cpus_per_rank) : "";
  // When a rank was killed, the others have half a minute. With --kill-on-bad-exit Slurm 24 kills
  // them at once, but its exit code is then theirs (143), also where all were about to end with 75.
  return "srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=0 --wait=30" + cpus;
}

}  // namespace

std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string SlurmScript(const SlurmJob& job) {
  std::string text = fmt::format(
      "#!/usr/bin/env bash\n# Trains the run {}. Submit it with sbatch from the directory in which "
      "this command was run:\n"
      "#   {}\n{}set -euo pipefail\n\n",
      job.name, Printable(job.made_by), Options(job));
  if (job.seeds.count > 0) {
    text += "job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n";
    text += fmt::format("seed=$(({} + SLURM_ARRAY_TASK_ID))\n", job.seeds.first);
  } else {
    text += "job=$SLURM_JOB_ID\n";
  }
  text +=
      "# When the job ends, in Unix time: the run saves and stops before.\n"
      "SLURM_JOB_END_TIME=$(SLURM_TIME_FORMAT=%s squeue --noheader --jobs=\"$job\" --format=%e) || "
      "true\n"
      "export SLURM_JOB_END_TIME\n\n";
  text += CommandLines(job);
  text += kWait;
  text += "# The program assigns a node's cores to its ranks.\n";
  text += Launcher(job) + " \"${command[@]}\" &\n";
  return text + kEnd;
}

}  // namespace syntra
