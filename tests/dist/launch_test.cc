// SPDX-License-Identifier: Apache-2.0
#include "dist/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

Launch Detect(const std::map<std::string, std::string>& variables) {
  return DetectLaunch([&](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

TEST(Launch, PlainStartDoesNotUseMpi) {
  EXPECT_FALSE(Detect({}).use_mpi);
  // A batch script without srun or mpirun.
  EXPECT_FALSE(
      Detect({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).use_mpi);
}

TEST(Launch, MpirunAlsoInsideSlurm) {
  const Launch launch = Detect({{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  EXPECT_TRUE(launch.use_mpi);
  EXPECT_EQ(launch.launcher, "mpirun");
  EXPECT_EQ(launch.expected_ranks, 4);
}

// Both are needed before MPI can be asked.
TEST(Launch, RankAndJobDirectory) {
  Launch launch = Detect({{"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_RANK", "3"},
                          {"PMIX_RANK", "3"},
                          {"PMIX_SERVER_TMPDIR", "/tmp/job"}});
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.job_directory, "/tmp/job");
  launch = Detect({{"PMIX_RANK", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.job_directory, "");
}

TEST(Launch, SrunWithPmix) {
  const Launch launch = Detect({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  EXPECT_TRUE(launch.use_mpi);
  EXPECT_NO_THROW(CheckWorldSize(launch, 2));
  EXPECT_THROW(CheckWorldSize(launch, 1), Error);
}

TEST(Launch, SrunWithoutPmixIsExplained) {
  for (const bool pmi2 : {false, true}) {
    std::map<std::string, std::string> variables = {{"SLURM_STEP_NUM_TASKS", "2"}};
    if (pmi2) variables = {{"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
    const std::string error =
        ErrorOf([&] { CheckConnection(Detect(variables)); }, ExitCode::kConfig);
    EXPECT_NE(error.find("--mpi=pmix"), std::string::npos);
  }
  // One task needs no connection.
  const Launch one = Detect({{"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_FALSE(one.use_mpi);
  EXPECT_NO_THROW(CheckConnection(one));
  // Which is which is known all the same.
  const Launch second = Detect({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}});
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.expected_ranks, 2);
}

TEST(Launch, LauncherOfAnotherMpiIsNoticed) {
  const Launch launch = Detect({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  EXPECT_TRUE(launch.use_mpi);
  EXPECT_THROW(CheckWorldSize(launch, 1), Error);
}

}  // namespace
}  // namespace syntra
