// SPDX-License-Identifier: Apache-2.0
#include "run/rollbacks.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace syntra {
namespace {

// The batches of the first steps of a run.
std::vector<int64_t> Batches(const Rollbacks& rollbacks, int64_t steps) {
  std::vector<int64_t> batches;
  for (int64_t step = 0; step < steps; ++step) batches.push_back(rollbacks.BatchAt(step));
  return batches;
}

TEST(Rollbacks, WithoutOneTheBatchIsTheStep) {
  EXPECT_EQ(Batches({}, 3), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Rollbacks, OtherBatchesFollowTheCheckpoint) {
  Rollbacks rollbacks;
  rollbacks.Add(5, 2);
  EXPECT_EQ(Batches(rollbacks, 5), (std::vector<int64_t>{0, 1, 5, 6, 7}));
}

// To the same checkpoint, to a later and to an earlier one: nothing is taken that was taken by
// steps that are undone.
TEST(Rollbacks, OfRollbacks) {
  struct Case {
    int64_t from, to;
    std::vector<int64_t> batches;
  };
  for (const Case& each :
       {Case{4, 2, {0, 1, 7, 8, 9}}, Case{4, 3, {0, 1, 5, 7, 8}}, Case{4, 1, {0, 7, 8, 9, 10}}}) {
    Rollbacks rollbacks;
    rollbacks.Add(5, 2);
    rollbacks.Add(each.from, each.to);
    EXPECT_EQ(Batches(rollbacks, 5), each.batches) << each.from << " to " << each.to;
  }
}

TEST(Rollbacks, TextRestores) {
  Rollbacks rollbacks, restored;
  EXPECT_EQ(rollbacks.ToText(), "");
  rollbacks.Add(5, 2);
  rollbacks.Add(4, 0);
  EXPECT_EQ(rollbacks.ToText(), "5-2 4-0");
  restored.Add(9, 8);
  restored.Restore(rollbacks.ToText());
  EXPECT_EQ(restored.count(), 2);
  EXPECT_EQ(Batches(restored, 6), Batches(rollbacks, 6));
  restored.Restore("");
  EXPECT_EQ(restored.count(), 0);
}

TEST(Rollbacks, ForeignTextIsRefused) {
  for (const char* text : {" ", "5", "5-2 ", "5-5", "2-5", "5--2", "x-1", "5-2-1", "5 2"}) {
    EXPECT_THROW(Rollbacks().Restore(text), Error) << text;
  }
}

}  // namespace
}  // namespace syntra
