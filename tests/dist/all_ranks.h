// SPDX-License-Identifier: Apache-2.0
// Runs the cases of a test program on all ranks alike.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "dist/communicator.h"

namespace syntra {

// One rank reports; the others speak up only when something fails. Returns the exit code: not 0 if
// a case failed on this rank, which makes mpirun's not 0.
inline int TestOnAllRanks(const Communicator& ranks) {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (ranks.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  const int result = RUN_ALL_TESTS();
  if (result != 0 && ranks.rank() != 0) {
    fmt::print(stderr, "rank {}: {} cases failed\n", ranks.rank(),
               testing::UnitTest::GetInstance()->failed_test_count());
  }
  return result;
}

}  // namespace syntra
