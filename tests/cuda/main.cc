// SPDX-License-Identifier: Apache-2.0
// Runs all tests of a backend on a GPU. Without one it ends with 77: all are skipped. After a case
// that leaves the GPU unusable for this process, or that hangs, it ends with 99 and names the case;
// launch/shards then runs the rest.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda.h"

namespace {

constexpr int kSkipped = 77, kDied = 99;
constexpr int kCaseSeconds = 60;  // SYNTRA_TEST_SECONDS sets others; 0: no limit

char running[512];  // the name of the case that runs, for a signal handler

void Write(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text, std::strlen(text));
}

// Makes only calls that a signal handler may make.
[[noreturn]] void EndBecauseOf(const char* what) {
  Write(what);
  Write(running);
  Write("\n");
  _exit(kDied);
}

void OnAlarm(int /*signal*/) { EndBecauseOf("\nHUNG IN "); }

// Every later case would fail, too, after a fault of the GPU, and none would run after a kernel
// that does not end.
class Watch : public testing::EmptyTestEventListener {
 public:
  explicit Watch(int seconds) : seconds_(seconds) { std::signal(SIGALRM, OnAlarm); }

 private:
  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(running, sizeof(running), "%s.%s", test.test_suite_name(), test.name());
    alarm(seconds_);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Failed() && cudaDeviceSynchronize() != cudaSuccess) {
      std::fflush(stdout);
      EndBecauseOf("POISONED BY ");
    }
    alarm(0);
  }

  const int seconds_;
};

}  // namespace

int main(int argc, char** argv) {
  const syntra::GpuReport found = syntra::FindGpus();
  if (found.count == 0) {
    std::printf("[  SKIPPED ] no GPU: %s\n", found.problem.c_str());
    return kSkipped;
  }
  // Tests time no algorithms, and leave alone what the user's programs have chosen.
  setenv("SYNTRA_ALGORITHMS", "first", /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);  // makes the cases, which needs the backend
  const char* seconds = std::getenv("SYNTRA_TEST_SECONDS");
  testing::UnitTest::GetInstance()->listeners().Append(
      new Watch(seconds ? std::atoi(seconds) : kCaseSeconds));
  return RUN_ALL_TESTS();
}
