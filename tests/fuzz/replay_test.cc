// SPDX-License-Identifier: Apache-2.0
// Every fuzz target without a fuzzer: its seeds, what was once a finding, and the same mutations
// every time.
#include <gtest/gtest.h>

#include <exception>

#include "base/log.h"
#include "base/text.h"
#include "target.h"

namespace syntra {
namespace {

const Target* const kTargets[] = {
#define SYNTRA_FUZZ_TARGET(name) &fuzz_##name,
#include "targets.def"
#undef SYNTRA_FUZZ_TARGET
};

class Replay : public testing::TestWithParam<const Target*> {
 protected:
  void SetUp() override { Log().set_level(spdlog::level::off); }
  void TearDown() override { Log().set_level(spdlog::level::info); }

  // A finding fails the test.
  bool Takes(std::string_view input, const std::string& which) {
    try {
      return Accepts(*GetParam(), input);
    } catch (const std::exception& error) {
      ADD_FAILURE() << which << ": " << error.what() << "\nThe input: " << Printable(input, 4000);
      return false;
    }
  }
};

TEST_P(Replay, AcceptsItsSeeds) {
  const std::vector<std::string> seeds = GetParam()->seeds();
  for (size_t i = 0; i < seeds.size(); ++i) {
    EXPECT_NO_THROW(GetParam()->run(seeds[i])) << Printable(seeds[i], 4000);
  }
  EXPECT_FALSE(seeds.empty());
}

TEST_P(Replay, WhatWasAFindingIsNone) {
  for (const Path& path : ReproducersOf(*GetParam())) Takes(ReadWholeFile(path), path.string());
}

TEST_P(Replay, Mutations) {
  const Target& target = *GetParam();
  const std::vector<std::string> seeds = target.seeds();
  int accepted = 0;
  for (int number = 0; number < target.mutations && !HasFailure(); ++number) {
    accepted += Takes(MutationOf(target, seeds, number), fmt::format("mutation {}", number));
  }
  if (HasFailure()) return;
  // Mutations that are all refused, or none of them, would test little.
  EXPECT_GT(accepted, target.mutations / 1000);
  if (target.refusals.empty()) {
    EXPECT_EQ(accepted, target.mutations);
  } else {
    EXPECT_LT(accepted, target.mutations);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Replay, testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace syntra
