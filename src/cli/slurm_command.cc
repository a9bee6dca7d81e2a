// SPDX-License-Identifier: Apache-2.0
// syntra slurm: a job script for Slurm.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_config.h"
#include "cli/seeds.h"
#include "train/run_directory.h"
#include "train/step.h"
#include "train/task_data.h"

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

# 75: stopped on request; 138: a rank was asked before it could hear that; 7: a rank hung; 137: one was killed; 141
# and 205: mpirun lost a node; 14: a rank of Open MPI 5 lost its connection to another one. The same command
# continues, so the job is queued again. One that was cancelled is not RUNNING any more, nor is one that Slurm itself
# has queued again. Where Slurm does not say, it decides itself whether the job can be queued.
if [[ $code =~ ^(7|14|75|137|138|141|205)$ ]]; then
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

// An array of jobs, with a run for each of several seeds.
struct SeedArray {
  int count = 0;          // 0: no array
  int64_t first = 0;      // the seed of the first; the others follow
  std::string directory;  // of the run with seed N: seed-N in it
};

struct SlurmJob {
  std::string name;
  std::string made_by;  // a command line, for the script's first comment
  std::string time;     // as Slurm reads it
  int nodes = 1;
  int ranks_per_node = 1;
  int gpus_per_node = 0;
  int cpus_per_rank = 0;  // 0: whole nodes
  // Empty: the cluster's default.
  std::string partition, account;
  std::string exclude;  // nodes that Slurm shall not give, as it lists them; empty: none
  std::string mpirun;   // path of Open MPI's mpirun, which starts the ranks; empty: srun does
  // The words of what each rank executes. An array adds --set for the seed and its directory.
  std::vector<std::string> command;
  SeedArray seeds;

  int64_t ranks() const { return int64_t{nodes} * ranks_per_node; }
};

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
            ShellWord("train.directory=" + job.seeds.directory + "/" + kSeedPrefix) + "\"$seed\"";
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

// A complete batch script in Bash. Its job saves and stops before its time is over, when it is
// preempted, or at SIGUSR1, is queued again, and continues until the run is done.
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
  // Where squeue does not answer, Slurm's own value stays.
  text +=
      "# When the job ends, in Unix time: the run saves and stops before.\n"
      "end=$(SLURM_TIME_FORMAT=%s squeue --noheader --jobs=\"$job\" --format=%e) && "
      "export SLURM_JOB_END_TIME=$end\n\n";
  text += CommandLines(job);
  text += kWait;
  text += "# The program assigns a node's cores to its ranks.\n";
  text += Launcher(job) + " \"${command[@]}\" &\n";
  return text + kEnd;
}

// The largest train.batch_size: each rank needs an example.
constexpr int64_t kMostJobRanks = 1 << 20;

struct SlurmOptions {
  std::shared_ptr<ConfigOptions> config;
  SlurmJob job;
  int ranks_per_node = 0;  // 0: one a GPU, or one
  StartOptions start;
  std::string mpi = "srun", container;
};

// A time limit in seconds; -1 if the text is none. MINUTES:SECONDS, which Slurm accepts, is not
// taken, since people mean hours and minutes by it.
int64_t LimitSeconds(const std::string& text) {
  const size_t dash = text.find('-');
  const bool has_days = dash != std::string::npos;
  std::vector<std::string> parts = Split(has_days ? text.substr(dash + 1) : text, ':');
  std::vector<int64_t> units{3600, 60, 1};
  if (parts.size() == 1 && !has_days) units = {60};
  if (parts.size() != units.size()) return -1;
  if (has_days) {
    parts.insert(parts.begin(), text.substr(0, dash));
    units.insert(units.begin(), 86400);
  }
  int64_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    int64_t value = 0;
    const bool is_number = parts[i].size() <= 9 &&
                           parts[i].find_first_not_of("0123456789") == std::string::npos &&
                           ParseInt64(parts[i], &value);
    // No more than makes one of the unit before, such as 59 minutes.
    if (!is_number || (i > 0 && value >= units[i - 1] / units[i])) return -1;
    total += value * units[i];
  }
  return total;
}

// Why it is no time for a job, or "".
std::string ProblemOfTime(const std::string& text) {
  constexpr int64_t kLeast = 60;  // Slurm counts in minutes
  const int64_t seconds = LimitSeconds(text);
  if (seconds >= kLeast) return "";
  return fmt::format(
      "\"{}\" is {}; write HOURS:MINUTES:SECONDS, e.g. 12:00:00, "
      "DAYS-HOURS:MINUTES:SECONDS, e.g. 2-12:00:00, or minutes, e.g. 90",
      Printable(text), seconds < 0 ? "not a valid time limit" : "less than a minute");
}

// In a comment of the script a space would end it.
std::string ProblemOfName(const std::string& text) {
  const bool good = !text.empty() && text.find_first_of(" \t\r\n\v\f") == std::string::npos;
  return good ? "" : fmt::format("\"{}\" is not a name", Printable(text));
}

// This program as another process can start it: as it was called or, in a bundle, by its start
// script.
Path ProgramPath() {
  const std::vector<std::string> words = CommandLineWords();
  const Path called = words.empty() ? "syntra" : words.front();
  const Path folder = called.parent_path();
  if (folder.filename() != "libexec") return called;
  const Path starter = folder.parent_path() / "bin" / called.filename();
  return std::filesystem::exists(starter) ? starter : called;
}

// The mpirun for `program`. A bundle has its own, the only one that suits the bundle's program.
Path MpirunFor(const Path& program) {
  const Path beside = program.parent_path() / "mpirun";
  return program.has_parent_path() && std::filesystem::exists(beside) ? beside : "mpirun";
}

// Slurm's file names and options take these as they are.
std::string JobName(const RunDirectory& directory) {
  std::string name = directory.name();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '-';
  }
  return name.empty() ? "syntra" : name;
}

std::vector<std::string> CommandOf(const SlurmOptions& options, bool names_tasks,
                                   const Path& program, bool has_gpus) {
  std::vector<std::string> words;
  if (options.container.empty()) {
    words = {program.string()};
  } else {
    words = {"apptainer", "exec"};
    if (has_gpus) words.push_back("--nv");
    words.insert(words.end(), {options.container, "syntra"});
  }
  words.push_back(names_tasks ? "finetune" : "pretrain");
  for (const std::string& file : options.config->Files()) {
    words.insert(words.end(), {"--config", file});
  }
  for (const std::string& change : options.config->overrides) {
    words.insert(words.end(), {"--set", change});
  }
  if (options.start.from_scratch) words.push_back("--from-scratch");
  if (!options.start.initial.empty()) {
    words.insert(words.end(), {"--init-from", options.start.initial});
  }
  return words;
}

Config LoadChecked(const SlurmOptions& options, const SlurmJob& job) {
  if (job.ranks() > kMostJobRanks) {
    Fail(ExitCode::kConfig, "--nodes {} of {} ranks are {} ranks; at most {} are allowed",
         job.nodes, job.ranks_per_node, WithThousands(job.ranks()), WithThousands(kMostJobRanks));
  }
  for (const std::string& file : options.config->Files()) {
    if (!file.starts_with("/dev/") && !file.starts_with("/proc/")) continue;
    Fail(ExitCode::kConfig,
         "{}: the job reads its configuration when it starts; write it to a file", file);
  }
  Config config = LoadForTraining(*options.config, options.start).config;
  if (config.train().device() == TrainConfig::CUDA && options.job.gpus_per_node == 0) {
    Fail(ExitCode::kConfig, "train.device is CUDA: say with --gpus-per-node how many GPUs to use");
  }
  if (NamesTasks(*options.config)) CheckTasksCanStart(config, MakeTasks(config.data()));
  if (job.seeds.count > 0) RequireNoRun(config.train().directory());
  // Throws where they cannot share a batch.
  BatchPartition::Of(config.train(), static_cast<int>(job.ranks()));
  return config;
}

std::string ScriptFor(const SlurmOptions& options) {
  SlurmJob job = options.job;
  job.ranks_per_node =
      options.ranks_per_node > 0 ? options.ranks_per_node : std::max(1, job.gpus_per_node);
  const bool names_tasks = NamesTasks(*options.config);
  const Config config = LoadChecked(options, job);
  const RunDirectory directory{config.train().directory()};
  const Path program = ProgramPath();
  job.name = JobName(directory);
  for (const std::string& word : CommandLineWords()) {
    job.made_by += (job.made_by.empty() ? "" : " ") + ShellWord(word);
  }
  if (options.mpi == "mpirun") job.mpirun = MpirunFor(program).string();
  job.command = CommandOf(options, names_tasks, program, job.gpus_per_node > 0);
  if (job.seeds.count > 0) {
    constexpr uint64_t kMostInShell = std::numeric_limits<int64_t>::max();
    if (config.train().seed() > kMostInShell - job.seeds.count) {
      Fail(ExitCode::kConfig, "train.seed {} is too large to count on from in a job script",
           config.train().seed());
    }
    job.seeds.first = static_cast<int64_t>(config.train().seed());
    job.seeds.directory = directory.root.string();
    const auto set = [&](const char* field, const Path& path) {
      job.command.insert(job.command.end(), {"--set", field + ("=" + path.string())});
    };
    // The token shards are the same for all seeds, and so is the start.
    if (!names_tasks) set("data.prepared", directory.Prepared(config.data()));
    const CheckpointConfig& checkpoint = config.checkpoint();
    if (!checkpoint.initial().empty() && checkpoint.initial_kept_in().empty()) {
      set("checkpoint.initial_kept_in", directory.start());
    }
  }
  return SlurmScript(job);
}

}  // namespace

Action SetUpSlurm(CLI::App& app) {
  const auto options = std::make_shared<SlurmOptions>();
  options->config = AddConfigOptions(app);
  SlurmJob& job = options->job;
  const CLI::Range any_number(1, 1000000);
  app.add_option("--nodes", job.nodes, "Number of nodes")->check(any_number)->capture_default_str();
  app.add_option(
         "--time", job.time,
         "Time limit of each job, e.g. 12:00:00; a run that takes longer continues in the next job")
      ->required()
      ->check(CLI::Validator([](std::string& text) { return ProblemOfTime(text); }, ""));
  app.add_option("--ranks-per-node", options->ranks_per_node,
                 "Ranks on each node; by default one per GPU, or one without GPUs")
      ->check(any_number);
  app.add_option("--gpus-per-node", job.gpus_per_node, "GPUs on each node")->check(any_number);
  app.add_option("--cpus-per-rank", job.cpus_per_rank,
                 "Cores for each rank; by default the job takes whole nodes")
      ->check(any_number);
  const CLI::Validator name([](std::string& text) { return ProblemOfName(text); }, "");
  app.add_option("--partition", job.partition, "Partition of the cluster")->check(name);
  app.add_option("--account", job.account, "Account to charge")->check(name);
  app.add_option("--exclude", job.exclude,
                 "Nodes to leave out, e.g. those that gave wrong results: node3,node[7-9]")
      ->check(name)
      ->type_name("NODES");
  app.add_option("--mpi", options->mpi,
                 "Program that starts the ranks: srun, which needs Slurm's PMIx plugin, or Open "
                 "MPI's mpirun")
      ->check(CLI::IsMember({"srun", "mpirun"}))
      ->capture_default_str();
  app.add_option("--container", options->container,
                 "Run the program from this Apptainer image on the nodes")
      ->type_name("FILE");
  app.add_option("--array-seeds", job.seeds.count,
                 "Number of seeds: train.seed, train.seed + 1, ...; the script is for a job array "
                 "with one run per seed, in the directory seed-N of train.directory")
      ->check(CLI::Range(2, 1000));
  AddStartOptions(app, &options->start);
  return [options] {
    fmt::print("{}", ScriptFor(*options));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
