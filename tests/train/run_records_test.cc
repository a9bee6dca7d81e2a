// SPDX-License-Identifier: Apache-2.0
#include "train/run_records.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

class RecordsOfARun : public ScratchTest {};

// Its idle time ends where this process begins, not where its start is recorded.
TEST_F(RecordsOfARun, AStartTellsSinceWhenNobodyTrained) {
  const RunDirectory run{scratch_};
  EventLog(run.events(), [] {
    return WallClock::now() - std::chrono::seconds(100);
  }).Write("stop", 3);
  RunRecords(run, "id", Config(), {.step = 3}).WriteStart(3, /*seconds=*/30, Json::object());
  const Json last = ReadEvents(run.events()).back().facts;
  EXPECT_NEAR(last.at("idle_seconds").get<double>(), 70, 5);
  EXPECT_EQ(last.at("seconds"), 30);
}

}  // namespace
}  // namespace syntra
