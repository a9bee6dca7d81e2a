// SPDX-License-Identifier: Apache-2.0
// Finds out from the environment who started this process, before MPI is touched: MPI_Init costs
// start-up time that a single process need not pay, and under a misconfigured srun it kills the
// process with a message that explains nothing.
#pragma once

#include <functional>
#include <string>

namespace syntra {

struct Launch {
  bool use_mpi = false;    // MPI can connect the ranks
  int expected_ranks = 1;  // 0: the launcher does not say
  int rank = 0;            // as the launcher numbers them; 0 if it does not say
  // The launcher's directory for this job on this machine, which it removes when the job ends.
  // Empty if there is none.
  std::string job_directory;
  std::string launcher;  // "mpirun", "srun", "another MPI's launcher" or ""
};

// `get` looks up an environment variable and returns null where there is none.
using Environment = std::function<const char*(const char*)>;

Launch DetectLaunch(const Environment& get);
Launch DetectLaunch();  // from this process's environment

// False for an srun that gives Open MPI no way to connect its tasks.
bool CanConnect(const Launch& launch);
// Throws Error(kConfig) unless it can.
void CheckConnection(const Launch& launch);

// Throws Error(kConfig) unless MPI found the ranks that the launcher started.
void CheckWorldSize(const Launch& launch, int world_size);

}  // namespace syntra
