// SPDX-License-Identifier: Apache-2.0
// A test with an empty directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace syntra {

class ScratchTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string name =
        fmt::format("syntra-{}-{}-{}", info->test_suite_name(), info->name(), getpid());
    std::ranges::replace(name, '/', '-');
    scratch_ = Path(testing::TempDir()) / name;
    RemoveAll(scratch_);
    CreateDirectories(scratch_);
  }
  void TearDown() override {
    if (!HasFailure()) RemoveAll(scratch_);
  }

  Path scratch_;
};

}  // namespace syntra
