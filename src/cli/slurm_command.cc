// SPDX-License-Identifier: Apache-2.0
// syntra slurm
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/host.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_config.h"
#include "cli/seeds.h"
#include "cli/slurm_script.h"
#include "train/run_directory.h"
#include "train/step.h"
#include "train/task_data.h"

namespace syntra {
namespace {

// The largest train.batch_size: each rank needs an example.
constexpr int64_t kMostJobRanks = 1 << 20;

struct SlurmOptions {
  std::shared_ptr<ConfigOptions> config;
  SlurmJob job;
  int ranks_per_node = 0;  // 0: one a GPU, or one
  StartOptions start;
  std::string mpi = "srun", container;
};

// A time limit in seconds; -1: it is none. Slurm also takes MINUTES:SECONDS, which people write for
// hours and minutes.
int64_t SecondsOf(const std::string& text) {
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
  const int64_t seconds = SecondsOf(text);
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
