// SPDX-License-Identifier: Apache-2.0
// Environment variables of launchers and schedulers, a line each: NAME=VALUE.
#include <cmath>
#include <map>

#include "base/text.h"
#include "dist/launch.h"
#include "fuzz/target.h"
#include "run/requests.h"
#include "run/watchdog.h"

namespace syntra {
namespace {

constexpr const char* kEndTime = "SLURM_JOB_END_TIME";

void Run(std::string_view input) {
  std::map<std::string, std::string> variables;
  for (const std::string& line : Split(input, '\n')) {
    const size_t equals = std::min(line.find('='), line.size());
    // A value ends at a NUL byte.
    variables[line.substr(0, equals)] = line.substr(std::min(equals + 1, line.size())).c_str();
  }
  const auto get = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  SYNTRA_CHECK(!std::isnan(SecondsLeftInJob(get(kEndTime))));
  const WatchdogLimits limits = LimitsFrom(get("SYNTRA_WATCHDOG"), {});
  SYNTRA_CHECK(limits.step > 0 && limits.gather > 0 && std::isfinite(limits.gather));
  const Launch launch = DetectLaunch(get);
  SYNTRA_CHECK(launch.expected_ranks >= 0 && launch.rank >= 0, "rank {} of {}", launch.rank,
               launch.expected_ranks);
  SYNTRA_CHECK(!launch.launcher.empty() || (!launch.use_mpi && launch.expected_ranks == 1));
}

std::vector<std::string> Seeds() {
  return {"", "OMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_RANK=1\nPMIX_SERVER_TMPDIR=/tmp/a",
          "SLURM_STEP_NUM_TASKS=4\nPMIX_RANK=3\nSLURM_JOB_END_TIME=1700000000",
          "PMI_SIZE=2\nPMI_RANK=0", "SYNTRA_WATCHDOG=step=5,first_steps=10,gather=0.5"};
}

}  // namespace

const Target fuzz_environment = {
    .name = "environment",
    .refusals = {ExitCode::kConfig},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"OMPI_COMM_WORLD_SIZE=", "PMIX_RANK=", "SLURM_STEP_NUM_TASKS=",
               "SLURM_JOB_END_TIME=", "-9223372036854775808", "4294967296", "-1", "inf", "nan",
               "1e400", ",", "=", "\n"},
    .mutations = 3000};

}  // namespace syntra
