// SPDX-License-Identifier: Apache-2.0
#include "dist/launch.h"

#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace syntra {
namespace {

// A text that is not a count, or one that MPI cannot have, is treated as missing.
int Number(const char* text) {
  int64_t value = 0;
  const bool is_count =
      text && ParseInt64(text, &value) && value >= 0 && value <= std::numeric_limits<int>::max();
  return is_count ? static_cast<int>(value) : 0;
}

std::string Text(const char* text) { return text ? text : ""; }

}  // namespace

Launch DetectLaunch(const Environment& get) {
  const std::string directory = Text(get("PMIX_SERVER_TMPDIR"));
  // mpirun first: inside a Slurm job its ranks see Slurm's variables too.
  if (const int ranks = Number(get("OMPI_COMM_WORLD_SIZE"))) {
    return {.use_mpi = true,
            .expected_ranks = ranks,
            .rank = Number(get("OMPI_COMM_WORLD_RANK")),
            .job_directory = directory,
            .launcher = "mpirun"};
  }
  // Set by srun only; a batch script, which mpirun or a plain start will follow, does not have it.
  const int tasks = Number(get("SLURM_STEP_NUM_TASKS"));
  if (const char* rank = get("PMIX_RANK")) {
    return {.use_mpi = true,
            .expected_ranks = tasks,
            .rank = Number(rank),
            .job_directory = directory,
            .launcher = tasks ? "srun" : "a PMIx launcher"};
  }
  if (tasks > 1) {
    return {.expected_ranks = tasks, .rank = Number(get("SLURM_PROCID")), .launcher = "srun"};
  }
  if (const int ranks = Number(get("PMI_SIZE")); ranks > 1) {
    return {.use_mpi = true,
            .expected_ranks = ranks,
            .rank = Number(get("PMI_RANK")),
            .launcher = "another MPI's launcher"};
  }
  return {};
}

Launch DetectLaunch() {
  return DetectLaunch([](const char* name) { return std::getenv(name); });
}

bool CanConnect(const Launch& launch) { return launch.use_mpi || launch.expected_ranks <= 1; }

void CheckConnection(const Launch& launch) {
  if (CanConnect(launch)) return;
  Fail(ExitCode::kConfig,
       "{} started {} tasks without PMIx, so MPI cannot connect them; start the job with \"srun "
       "--mpi=pmix ...\" (\"srun --mpi=list\" must show pmix) or with mpirun inside sbatch",
       launch.launcher, launch.expected_ranks);
}

void CheckWorldSize(const Launch& launch, int world_size) {
  if (launch.expected_ranks == 0 || launch.expected_ranks == world_size) return;
  Fail(ExitCode::kConfig,
       "{} started {} tasks but MPI sees {}: the launcher and the MPI library do not fit together; "
       "use the mpirun of the Open MPI that this program is linked with, or \"srun --mpi=pmix\"",
       launch.launcher, launch.expected_ranks, world_size);
}

}  // namespace syntra
