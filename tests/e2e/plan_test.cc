// SPDX-License-Identifier: Apache-2.0
// `plan --nodes`: predictions, sweeps, the picture, measured figures, and mistakes.
#include <gmock/gmock.h>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using testing::HasSubstr;

const std::string kConfigs = SYNTRA_SOURCE_DIR "/configs/";

class PlanNodes : public TinyRun {
 protected:
  Arguments Plan(const Arguments& more) const {
    Arguments arguments{"plan", config_.string(), kConfigs + "clusters/h100_infiniband.textproto",
                        "--set", "train.batch_size=8192"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Json PlanJson(Arguments more) const {
    more.push_back("--json");
    const Outcome outcome = Run(Plan(more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return ParseJson(outcome.out);
  }
};

TEST_F(PlanNodes, PredictsUpTo4096Gpus) {
  const Json alone = PlanJson({"--nodes", "1", "--gpus-per-node", "1"}).at("prediction");
  EXPECT_DOUBLE_EQ(alone.at("efficiency"), 1);
  EXPECT_EQ(alone.at("exposed_seconds"), 0);
  const Json all = PlanJson({"--nodes", "512", "--gpus-per-node", "8"});
  const Json& many = all.at("prediction");
  EXPECT_EQ(many.at("ranks"), 4096);
  EXPECT_LT(many.at("efficiency"), 1);
  EXPECT_GT(many.at("exposed_seconds"), 0);
  EXPECT_GT(many.at("checkpoint_write_seconds"), 0);
  EXPECT_GT(many.at("gpu_hours"), 0);
  EXPECT_TRUE(many.at("cost").is_null());  // no price is given
  EXPECT_TRUE(many.at("fits"));
  // Nobody takes it for a measurement.
  EXPECT_THAT(all.at("cluster").at("source").get<std::string>(), HasSubstr("assumptions"));
}

TEST_F(PlanNodes, TextSaysThatItIsNoMeasurement) {
  const Outcome outcome =
      Run(Plan({"--nodes", "2", "--gpus-per-node", "8", "--set", "cluster.price_per_hour=2.5"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"predicted on h100_infiniband: 2 nodes, 8 GPUs each", "efficiency", "all-reduce not hidden",
        "GPU-hours", "(2.5 per GPU-hour)", "not measurements", "nothing was measured with this",
        "infiniband_8x400", " TFLOP/s of a GPU"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST_F(PlanNodes, SlowerLinksTakeLonger) {
  const Arguments where{"--nodes", "4", "--gpus-per-node", "8"};
  const auto seconds = [&](const std::string& link) {
    Arguments arguments = where;
    if (!link.empty()) arguments.insert(arguments.end(), {"--link", link});
    return PlanJson(arguments).at("prediction").at("step_seconds").get<double>();
  };
  EXPECT_LT(seconds(""), seconds("infiniband_400"));
  EXPECT_LT(seconds("infiniband_400"), seconds("ethernet_100"));
  EXPECT_EQ(seconds(""), seconds("infiniband_8x400"));
}

TEST_F(PlanNodes, SweepKeepsTheRowsOfARank) {
  const Json sweep = PlanJson({"--nodes", "4", "--gpus-per-node", "8", "--sweep"}).at("sweep");
  std::vector<int> ranks;
  for (const Json& point : sweep) {
    ranks.push_back(point.at("ranks"));
    const double rows = point.at("examples_per_second").get<double>() *
                        point.at("step_seconds").get<double>() / point.at("ranks").get<double>();
    EXPECT_NEAR(rows, 8192 / 32, 1e-6);
  }
  EXPECT_EQ(ranks, (std::vector<int>{1, 2, 4, 8, 16, 32}));
}

TEST_F(PlanNodes, DrawsModelsWithAndWithoutSharding) {
  const Path picture = scratch_ / "efficiency.svg";
  const Outcome outcome = Run({"plan", kConfigs + "clusters/h100_infiniband.textproto", "--model",
                               config_.string(), "--model", kConfigs + "quickstart.textproto",
                               "--set", "train.batch_size=128", "--set", "optimizer.kind=ADAMW",
                               "--nodes", "2", "--gpus-per-node", "4", "--svg", picture.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string svg = ReadWholeFile(picture);
  for (const char* part : {"quickstart  ", "quickstart, sharded", "GPUs of h100_infiniband",
                           "efficiency, predicted"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

TEST_F(PlanNodes, MistakesAreNamed) {
  struct Case {
    Arguments arguments;
    const char* message;
  };
  const std::string figures = scratch_ / "machine.textproto";
  const Case cases[] = {
      {{"--nodes", "0"}, "--nodes"},
      {{"--nodes", "513", "--gpus-per-node", "8"}, "4,104 ranks; predictions go up to 4,096"},
      {{"--nodes", "3"}, "train.batch_size 8192 cannot be shared equally by 3 ranks"},
      {{"--nodes", "2", "--link", "infiniband"}, "no link \"infiniband\""},
      {{"--nodes", "2", "--ranks-per-node", "2"}, "use --gpus-per-node"},
      {{"--gpus-per-node", "2"}, "--nodes"},
      {{"--sweep"}, "--nodes"},
      {{"--nodes", "2", "--ranks", "2"}, "excludes"},
      {{"--measure", figures, "--nodes", "2"}, "excludes"},
      {{"--measure", figures, "--ranks", "2"}, "excludes"},
      {{"--measure", figures, "--json"}, "excludes"},
      {{"--nodes", "2", "--set", "cluster.gigaflops_fp32=0"}, "cluster.gigaflops_fp32"},
      {{"--nodes", "2", "--set", "train.reduction=EXACT", "--set", "train.micro_batch_size=8"},
       "use FAST"},
  };
  for (const Case& each : cases) {
    const Outcome outcome = Run(Plan(each.arguments));
    EXPECT_EQ(outcome.code, 2) << each.message;
    EXPECT_THAT(outcome.err, HasSubstr(each.message));
    EXPECT_EQ(outcome.out, "");
  }
  const Outcome none = Run({"plan", config_.string(), "--nodes", "2"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("configs/clusters/h100_infiniband.textproto"));
}

// What two ranks measure serves one and four; `plan` knows that they share the cores.
TEST_F(PlanNodes, MeasuredFiguresPredict) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Path figures = scratch_ / "machine.textproto";
  const Outcome measured =
      Run({"plan", config_.string(), "--measure", figures.string(), "--set", "train.device=CPU"},
          {.ranks = 2});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_EQ(measured.out, ReadWholeFile(figures));
  EXPECT_THAT(measured.out, HasSubstr("measured by syntra plan --measure with 2 ranks"));
  for (const char* ranks : {"1", "2", "4"}) {
    const Outcome plan = Run({"plan", config_.string(), figures.string(), "--nodes", "1",
                              "--ranks-per-node", ranks, "--json"});
    ASSERT_EQ(plan.code, 0) << plan.err;
    const Json prediction = ParseJson(plan.out).at("prediction");
    EXPECT_GT(prediction.at("step_seconds"), 0);
    EXPECT_EQ(prediction.at("exposed_sum_seconds").get<double>() > 0, ranks != std::string("1"));
  }
  const Outcome gpus =
      Run({"plan", config_.string(), figures.string(), "--nodes", "1", "--gpus-per-node", "2"});
  EXPECT_EQ(gpus.code, 2);
  EXPECT_THAT(gpus.err, HasSubstr("use --ranks-per-node"));
}

}  // namespace
}  // namespace syntra
