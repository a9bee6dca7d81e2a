// SPDX-License-Identifier: Apache-2.0
// What a run takes on layouts of ranks.
#include "plan/forecast.h"

#include "base/error.h"
#include "plan/memory_needs.h"
#include "tests/base/error_of.h"
#include "tests/plan/small_model.h"

namespace syntra {
namespace {

// The small model for 100 steps, on a cluster of GPUs.
Config OnGpus() {
  Config config = SmallModel();
  config.mutable_train()->set_steps(100);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "gigaflops: 4e5 gigaflops_fp32: 2e4 memory_gigabytes_per_second: 3000 "
      "host_gigabytes_per_second: 50 storage_gigabytes_per_second: 2 collective_microseconds: 15 "
      "memory_gibibytes: 80 link { name: 'nvlink' latency_microseconds: 2 gigabytes_per_second: "
      "370 } link { name: 'ethernet' gigabytes_per_second: 10 } inside_node: 'nvlink' ",
      config.mutable_cluster()));
  return config;
}

TEST(Forecasts, SmallerLayoutsHaveTheRowsAndExamplesOfTheLargest) {
  Config config = OnGpus();
  config.mutable_train()->set_batch_size(12);
  const std::vector<RunForecast> sweep = ForecastsUpTo(config, {3, 2}, "ethernet");
  std::vector<int64_t> ranks;
  for (const RunForecast& each : sweep) {
    ranks.push_back(each.layout.ranks());
    const TrainConfig& train = each.plan->config().train();
    EXPECT_EQ(train.batch_size(), 2 * ranks.back());
    EXPECT_EQ(train.batch_size() * train.steps(), 1200);
    EXPECT_LE(each.efficiency, 1 + 1e-9);
  }
  EXPECT_EQ(ranks, (std::vector<int64_t>{1, 2, 4, 6}));
  EXPECT_DOUBLE_EQ(sweep.front().efficiency, 1);
  EXPECT_EQ(sweep.back().step.seconds(), ForecastOn(config, {3, 2}, "ethernet").step.seconds());
}

// The first state and the last one are saved as well as those that are due in between.
TEST(Forecasts, ARunTakesTheTimeOfItsStepsAndSaves) {
  Config config = OnGpus();
  for (const auto& [every, saves] : {std::pair{0, 2}, {30, 5}, {50, 3}, {99, 3}, {100, 2}}) {
    config.mutable_checkpoint()->set_every(every);
    const RunForecast run = ForecastOn(config, {1, 2}, "");
    EXPECT_EQ(run.saves, saves) << every;
    EXPECT_GT(run.save.stall, 0);
    EXPECT_DOUBLE_EQ(run.cost.seconds, 100 * run.step.seconds() + saves * run.save.stall) << every;
  }
}

TEST(Forecasts, MemoryIsThatOfAGpuOrOfANode) {
  Config config = OnGpus();
  config.mutable_train()->set_precision(TrainConfig::BF16);
  const RunForecast gpus = ForecastOn(config, {1, 2}, "");
  const MemoryNeeds needs = MemoryNeedsOn(*gpus.plan, true);
  EXPECT_EQ(needs.rounded, RoundedBytes(gpus.plan->parameters().arena_elements()));
  EXPECT_EQ(gpus.memory, needs.total());
  EXPECT_TRUE(gpus.fits);
  config.mutable_cluster()->set_cores_per_node(8);
  config.mutable_cluster()->set_memory_gibibytes(0.001);
  const RunForecast cores = ForecastOn(config, {1, 2}, "");
  EXPECT_EQ(cores.memory, 2 * MemoryNeedsOn(*cores.plan, false).total());
  EXPECT_FALSE(cores.fits);
}

TEST(Forecasts, ExactSumsOfGpusAreNotKnown) {
  Config config = OnGpus();
  config.mutable_train()->set_reduction(TrainConfig::EXACT);
  config.mutable_train()->set_micro_batch_size(2);
  EXPECT_NO_THROW(ForecastOn(config, {1, 1}, ""));
  const std::string error = ErrorOf([&] { ForecastOn(config, {1, 2}, ""); }, ExitCode::kConfig);
  EXPECT_NE(error.find("use FAST here"), std::string::npos) << error;
}

}  // namespace
}  // namespace syntra
