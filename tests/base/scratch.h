// SPDX-License-Identifier: Apache-2.0
// Empty directories for tests. Each process has its own, so that tests may run side by side, and
// removes them at its end unless a test failed.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace syntra {

namespace internal {
class ScratchRoot {
 public:
  explicit ScratchRoot(const Path& parent)
      : path_(parent / ("syntra-test-" + std::to_string(getpid()))) {}
  ~ScratchRoot() {
    // Not in a child that was forked by a test.
    if (getpid() != owner_ || testing::UnitTest::GetInstance()->Failed()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Path Empty(std::string_view name) const {
    const Path path = path_ / name;
    RemoveAll(path);
    CreateDirectories(path);
    return path;
  }

 private:
  Path path_;
  pid_t owner_ = getpid();
};
}  // namespace internal

// A new directory of this name.
inline Path ScratchDirectory(std::string_view name) {
  static const internal::ScratchRoot root{Path(testing::TempDir())};
  return root.Empty(name);
}

// The same in memory where possible, for tests that sync thousands of times.
inline Path ScratchInMemory(std::string_view name) {
  const Path memory = "/dev/shm";
  static const internal::ScratchRoot root(
      access(memory.c_str(), W_OK) == 0 ? memory : Path(testing::TempDir()));
  return root.Empty(name);
}

// A test with a directory of its own.
class ScratchTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = fmt::format("{}-{}", info->test_suite_name(), info->name());
    std::ranges::replace(name, '/', '-');
    scratch_ = ScratchDirectory(name);
  }
  void TearDown() override {
    if (!HasFailure()) RemoveAll(scratch_);
  }

  Path scratch_;
};

}  // namespace syntra
