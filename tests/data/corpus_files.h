// SPDX-License-Identifier: Apache-2.0
// Small corpus files for the data tests: files, gzip, tf.Examples.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "tests/base/scratch.h"

namespace syntra {

Path WriteScratch(const Path& path, std::string_view content);

std::string Gzip(std::string_view text);
// A serialised tf.Example with one bytes feature.
std::string TfExample(const std::string& feature, std::string_view value);

// The message of the Error(kData) that `run` throws; fails the test if it throws none.
template <typename Run>
std::string DataErrorOf(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

Path SamplePath(std::string_view name);
// The shared corpora beside the source tree; empty if they are not installed.
Path SharedDataPath();

}  // namespace syntra

// Skips the test if the shared corpora are not installed.
#define SYNTRA_NEEDS_SHARED_DATA()                                                       \
  if (::syntra::SharedDataPath().empty()) {                                              \
    GTEST_SKIP() << "needs the shared corpora in ../shared/data beside the source tree"; \
  }
