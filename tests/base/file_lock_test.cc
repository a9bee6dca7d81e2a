// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

// Some holders remove the file while others have it open and wait.
TEST(FileLock, HasOneHolderWhereHoldersRemoveIt) {
  const Path directory = ScratchDirectory("file_lock");
  const Path path = directory / "lock", held = directory / "held";
  constexpr int kProcesses = 4;
  constexpr double kSeconds = 1;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (const double end = MonotonicSeconds() + kSeconds; MonotonicSeconds() < end;) {
      const std::optional<FileLock> lock = FileLock::Try(path);
      if (!lock) continue;
      if (mkdir(held.c_str(), 0700) != 0) _exit(1);
      rmdir(held.c_str());
      unlink(path.c_str());
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace syntra
