// SPDX-License-Identifier: Apache-2.0
#include "run/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syntra {
namespace {

RunEvent At(double time, const std::string& name, const Json& facts = Json::object()) {
  return {name, 0, time, facts};
}

// Begins at 100, is killed after the save at 150, continues at 170 and is done at 200.
std::vector<RunEvent> KilledOnce() {
  return {At(110, "start", {{"seconds", 10}}),
          At(115, "evaluation", {{"seconds", 5}}),
          At(150, "save", {{"seconds", 2}}),
          At(174, "start",
             {{"seconds", 4}, {"lost_steps", 3}, {"lost_seconds", 6}, {"idle_seconds", 14}}),
          At(180, "save_failed", {{"seconds", 1}}),
          At(200, "done")};
}

RunHistory History() {
  RunHistory history;
  history.seconds = 50;
  history.skipped_seconds = 1;
  history.last_time = 199;
  return history;
}

double PartOf(const Goodput& goodput, const std::string& name) {
  for (const auto& part : goodput.Parts()) {
    if (part.name == name) return part.value;
  }
  ADD_FAILURE() << name;
  return NAN;
}

TEST(Goodput, EverySecondHasItsPart) {
  const auto goodput = GoodputOf(History(), KilledOnce());
  ASSERT_TRUE(goodput);
  EXPECT_EQ(goodput->wall, 100);
  EXPECT_EQ(goodput->share(), 0.49);
  EXPECT_EQ(goodput->restarts, 1);
  EXPECT_EQ(goodput->failures, 1);
  EXPECT_EQ(goodput->lost_steps, 3);
  const std::map<std::string, double> parts{
      {"useful steps", 49}, {"skipped steps", 1}, {"lost steps", 6}, {"evaluation", 5},
      {"saves", 3},         {"start", 14},        {"idle", 14},      {"other", 8}};
  EXPECT_EQ(goodput->Parts().size(), parts.size());
  for (const auto& [name, seconds] : parts) EXPECT_EQ(PartOf(*goodput, name), seconds) << name;
  EXPECT_EQ(Describe(*goodput),
            "49.0% of 1m40s in useful steps; 1 restart (1 after a failure), 3 steps lost; skipped "
            "steps 1.0%, lost steps 6.0%, evaluation 5.0%, saves 3.0%, start 14.0%, idle 14.0%, "
            "other 8.0%");
}

TEST(Goodput, ARestartAfterAnOrderlyEndIsNoFailure) {
  std::vector<RunEvent> events = KilledOnce();
  events.insert(events.begin() + 3, At(156, "stop"));
  const auto goodput = GoodputOf(History(), events);
  ASSERT_TRUE(goodput);
  EXPECT_EQ(goodput->restarts, 1);
  EXPECT_EQ(goodput->failures, 0);
}

TEST(Goodput, ARollbackIsNoRestart) {
  std::vector<RunEvent> events = KilledOnce();
  events.insert(events.begin() + 3, At(170, "rollback", {{"to", 40}}));
  const auto goodput = GoodputOf(History(), events);
  ASSERT_TRUE(goodput);
  EXPECT_EQ(goodput->restarts, 0);
  EXPECT_EQ(goodput->failures, 0);
  EXPECT_EQ(goodput->lost_steps, 3);
}

// A run that goes on: its last sign is a step.
TEST(Goodput, LastsUntilTheLastSign) {
  RunHistory history = History();
  history.seconds = 20;
  history.last_time = 131;
  const std::vector<RunEvent> events{At(110, "start", {{"seconds", 10}})};
  EXPECT_EQ(GoodputOf(history, events)->wall, 31);
}

TEST(Goodput, UnknownWithoutEventsOrWithAClockSetBack) {
  EXPECT_FALSE(GoodputOf(History(), {}));
  std::vector<RunEvent> events = KilledOnce();
  for (RunEvent& event : events) event.time = event.name == "start" ? 1000 : 20;
  EXPECT_FALSE(GoodputOf(History(), events));
}

TEST(Goodput, PhasesAreSharesOfTheSteps) {
  RunHistory history;
  EXPECT_EQ(DescribePhases(history), "");
  history.seconds = 10;
  history.phases = {1, 3, 4, 0.5, 1};
  EXPECT_EQ(DescribePhases(history),
            "data 10.0%, forward 30.0%, backward 40.0%, reduce 5.0%, optimizer 10.0%, other 5.0%");
  history.phases = {0, 3, 4, 0.004, 3};
  EXPECT_EQ(DescribePhases(history), "forward 30.0%, backward 40.0%, optimizer 30.0%");
}

}  // namespace
}  // namespace syntra
