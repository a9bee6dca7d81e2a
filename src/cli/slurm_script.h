// SPDX-License-Identifier: Apache-2.0
// Job scripts for Slurm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syntra {

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

// A word as a shell reads it back, in quotes where it needs them.
std::string ShellWord(const std::string& word);

// A complete batch script in Bash. Its job saves and stops before its time is over, when it is
// preempted, or at SIGUSR1, is queued again, and continues until the run is done.
std::string SlurmScript(const SlurmJob& job);

}  // namespace syntra
