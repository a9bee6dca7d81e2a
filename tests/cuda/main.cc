// SPDX-License-Identifier: Apache-2.0
// Runs all tests of a backend on a GPU. Without one it ends with 77: all are skipped.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/cuda.h"

int main(int argc, char** argv) {
  const syntra::GpuReport found = syntra::FindGpus();
  if (found.count == 0) {
    std::printf("[  SKIPPED ] no GPU: %s\n", found.problem.c_str());
    return 77;
  }
  // Tests time no algorithms, and leave alone what the user's programs have chosen.
  setenv("SYNTRA_ALGORITHMS", "first", /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);  // makes the cases, which needs the backend
  return RUN_ALL_TESTS();
}
