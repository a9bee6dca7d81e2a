// SPDX-License-Identifier: Apache-2.0
#include "train/continuation.h"

#include <gtest/gtest.h>

#include "optim/schedule.h"

namespace syntra {
namespace {

Config ConfigFor(int64_t steps, ScheduleConfig::Kind kind) {
  Config config;
  config.mutable_train()->set_steps(steps);
  ScheduleConfig& schedule = *config.mutable_optimizer()->mutable_schedule();
  schedule.set_kind(kind);
  schedule.set_rate(0.1);
  schedule.set_warmup_steps(2);
  return config;
}

// Steps 1 to `end` as a run with this configuration records them.
void Record(const Config& config, int64_t end, RunHistory* history) {
  Curve& rates = history->curves["learning_rate"];
  for (int64_t step = std::ssize(rates) + 1; step <= end; ++step) {
    rates.push_back({static_cast<double>(step), LearningRate(config.optimizer().schedule(),
                                                             step - 1, config.train().steps())});
  }
}

TEST(OtherRates, AreThoseOfStepsUnderAnotherSchedule) {
  for (const auto kind : {ScheduleConfig::LINEAR, ScheduleConfig::COSINE}) {
    const Config before = ConfigFor(10, kind), now = ConfigFor(20, kind);
    RunHistory history;
    Record(before, 10, &history);
    EXPECT_EQ(OtherRates(history, before), "");
    Record(now, 20, &history);
    // The warm-up is the same, and so is the first step after it.
    EXPECT_TRUE(OtherRates(history, now).starts_with("steps 4 to 10 had other learning rates"))
        << OtherRates(history, now);
  }
}

TEST(OtherRates, AreNoneWhereTheNumberOfStepsDoesNotMatter) {
  for (const auto kind : {ScheduleConfig::CONSTANT, ScheduleConfig::RSQRT}) {
    const Config before = ConfigFor(10, kind), now = ConfigFor(20, kind);
    RunHistory history;
    Record(before, 10, &history);
    Record(now, 20, &history);
    EXPECT_EQ(OtherRates(history, now), "");
  }
  // Early versions recorded none.
  RunHistory old;
  old.curves["learning_rate"] = {{1, NAN}, {2, NAN}};
  EXPECT_EQ(OtherRates(old, ConfigFor(2, ScheduleConfig::LINEAR)), "");
}

}  // namespace
}  // namespace syntra
