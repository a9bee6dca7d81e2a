// SPDX-License-Identifier: Apache-2.0
// The time of day jumps while a run trains, as when a machine's clock is set.
#include <fstream>
#include <regex>
#include <set>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class ClockJumps : public TinyRun, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(SYNTRA_FAKETIME)) GTEST_SKIP() << "no libfaketime";
    TinyRun::SetUp();
  }
};

// libfaketime reads the offset anew at each look at the clock. The monotonic clock goes on as ever,
// as it does when an administrator sets the other one.
TEST_P(ClockJumps, NothingDependsOnTheTimeOfDay) {
  const Arguments settings{"checkpoint.every=4", "train.log_every=1"};
  Train("straight", settings);
  const Path offset = scratch_ / "offset";
  // At once: a slow disk would let the run end before.
  const auto jump = [&](const char* by) {
    const Path next = scratch_ / "next-offset";
    std::ofstream(next) << by;
    std::filesystem::rename(next, offset);
  };
  jump("+0");
  StartOptions options{.environment = {"LD_PRELOAD=" SYNTRA_FAKETIME,
                                       "FAKETIME_TIMESTAMP_FILE=" + offset.string(),
                                       "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
                                       // A run on a fast machine would be over before the jump.
                                       "SYNTRA_FAILPOINT=slow_rank@9-20"}};
  Program run(scratch_, Pretrain("jumped", settings), options);
  ASSERT_TRUE(WaitUntil([&] { return LastLoggedStep("jumped") >= 8 || !run.running(); }));
  jump(GetParam());
  const Outcome outcome = run.Wait();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Trace(Directory("jumped"), 20), Trace(Directory("straight"), 20));
  // The jump happened: two lines of metrics are far apart, in one direction or the other.
  std::set<std::string> dates;
  for (const Json& line : Metrics("jumped")) {
    dates.insert(line.at("time").get<std::string>().substr(0, 13));  // to the hour
  }
  EXPECT_GE(dates.size(), 2u);
  // What is left of the run is told in seconds.
  const std::regex left("ETA [0-9]+s");
  EXPECT_TRUE(std::regex_search(outcome.err, left)) << outcome.err;
  EXPECT_EQ(outcome.err.find("ETA ?"), std::string::npos) << outcome.err;
  EXPECT_FALSE(outcome.Says("stopped on request"));
  // The newest checkpoint is that of the last step, whatever the dates of the files.
  Train("jumped", {"checkpoint.every=4", "train.steps=21", "optimizer.schedule.kind=LINEAR"});
  EXPECT_EQ(LastLoggedStep("jumped"), 21);
}

INSTANTIATE_TEST_SUITE_P(All, ClockJumps, testing::Values("+1h", "-1h", "+10y", "-10y"),
                         [](const auto& info) {
                           return std::string(info.param[0] == '+' ? "Ahead" : "Back") +
                                  (info.param[3] == 0 ? "AnHour" : "TenYears");
                         });

}  // namespace
}  // namespace syntra
