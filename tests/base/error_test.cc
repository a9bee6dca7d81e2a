// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include "base/name_table.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

TEST(Error, CarriesCodeAndContextInnermostFirst) {
  ErrorContext outer([] { return std::string("training"); });
  try {
    ErrorContext inner([] { return std::string("reading shard 3"); });
    Fail(ExitCode::kData, "line {} is broken", 7);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kData);
    EXPECT_STREQ(error.what(), "line 7 is broken\n  while reading shard 3\n  while training");
  }
}

TEST(Error, CheckNamesConditionAndMessage) {
  const std::string error =
      ErrorOf([&] { SYNTRA_CHECK(1 + 1 == 3, "got {}", 2); }, ExitCode::kInternal);
  EXPECT_NE(error.find("1 + 1 == 3: got 2"), std::string::npos);
}

TEST(NameTable, SuggestsTheNearestNameOrListsAll) {
  NameTable<int> table("mixer");
  table.Add("random", 1);
  table.Add("dense", 2);
  EXPECT_EQ(table.Get("dense"), 2);
  const std::string error = ErrorOf([&] { table.Get("randon"); }, ExitCode::kConfig);
  EXPECT_EQ(error, "unknown mixer \"randon\"; did you mean \"random\"?");
  EXPECT_EQ(ErrorOf([&] { table.Get("convolution"); }, ExitCode::kConfig),
            "unknown mixer \"convolution\"; there are dense, random");
  EXPECT_THROW(table.Add("dense", 3), Error);
}

}  // namespace
}  // namespace syntra
