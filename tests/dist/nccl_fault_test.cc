// SPDX-License-Identifier: Apache-2.0
// How a job of two ranks ends when NCCL fails.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/error.h"
#include "tests/base/waiting.h"

namespace syntra {
namespace {

struct Outcome {
  int code = -1;
  std::string output;
};

class NcclFault : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(SYNTRA_MPIRUN).empty()) GTEST_SKIP() << "mpirun is not installed";
  }

  // `seconds`: what NCCL may take to connect and to end. The job always ends.
  static Outcome Run(const std::string& fault, const std::string& argument = "",
                     double seconds = kHangSeconds / 2) {
    const std::string command = fmt::format(
        "LD_LIBRARY_PATH={} SYNTRA_FAKE_NCCL={} OMP_NUM_THREADS=1 {} --oversubscribe "
        "--allow-run-as-root --bind-to none --timeout {} -n 2 {} {} {} 2>&1",
        SYNTRA_FAKE_NCCL_FOLDER, fault, SYNTRA_MPIRUN, kHangSeconds, SYNTRA_NCCL_FAULT_RANK,
        seconds, argument);
    Outcome outcome;
    FILE* output = popen(command.c_str(), "r");
    for (int byte; (byte = fgetc(output)) != EOF;) outcome.output += static_cast<char>(byte);
    const int status = pclose(output);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

  static void ExpectPeerLost(const Outcome& outcome, const std::string& message) {
    Expect(ExitCode::kPeerLost, outcome, message);
  }
  static void Expect(ExitCode code, const Outcome& outcome, const std::string& message) {
    EXPECT_EQ(outcome.code, static_cast<int>(code)) << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  }
};

TEST_F(NcclFault, NoneEndsInOrder) {
  const Outcome outcome = Run("none");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "");
}

TEST_F(NcclFault, ConnectingForEverHasADeadline) {
  ExpectPeerLost(Run("alone", "", 1), "ncclCommInitRankConfig is not done after 1 s");
}

TEST_F(NcclFault, FailureInTheBackgroundNamesTheCall) {
  ExpectPeerLost(Run("refused"),
                 "ncclCommInitRankConfig failed: unhandled system error (the planted fault)");
}

// A job that is started again would lack the memory again.
TEST_F(NcclFault, MissingGpuMemoryIsNoLostRank) {
  Expect(ExitCode::kResources, Run("full"),
         "'out of memory'); NCCL needs GPU memory beside the model");
}

// The kernel that hangs is ended, and the main thread says so.
TEST_F(NcclFault, AsynchronousErrorEndsTheJob) {
  ExpectPeerLost(Run("lost"), "thrown: NCCL lost a rank: remote process exited");
}

TEST_F(NcclFault, AsynchronousErrorEndsTheJobThoughAbortingHangs) {
  const Outcome outcome = Run("stuck", "", 1);
  ExpectPeerLost(outcome, ": error: NCCL lost a rank: remote process exited");
  EXPECT_EQ(outcome.output.find("thrown"), std::string::npos) << outcome.output;
}

TEST_F(NcclFault, ARankMayFinishSomethingBeforeItEndsTheJob) {
  const Outcome outcome = Run("lost", "finish", 1);
  ExpectPeerLost(outcome, "thrown: NCCL lost a rank: remote process exited");
  EXPECT_NE(outcome.output.find("finished"), std::string::npos) << outcome.output;
}

TEST_F(NcclFault, ErrorOfOneRankIsNotHiddenByTheOthers) {
  const Outcome outcome = Run("none", "leave");
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::kData)) << outcome.output;
  EXPECT_NE(outcome.output.find("thrown: an error of this rank"), std::string::npos);
  EXPECT_EQ(outcome.output.find("nccl"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace syntra
