// SPDX-License-Identifier: Apache-2.0
// Compares training on a GPU with training on the CPU. The GPU is the simulated one of tests/simt,
// or a real one if SYNTRA_TEST_GPU_PROGRAM names a `syntra` built for it.
#include <set>

#include "tests/e2e/profile.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

// Smooth, and without updates that divide by one gradient's size: rounding stays small.
const Arguments kSettings{"model.feed_forward.activation=GATED_GELU",
                          "optimizer.kind=ADAFACTOR",
                          "optimizer.min_factored_size=16",
                          "optimizer.schedule.rate=0.02",
                          "train.steps=4",
                          "train.batch_size=4",
                          "train.micro_batch_size=1",
                          "train.reduction=EXACT",
                          "evaluation.batches=1",
                          "checkpoint.every=1",
                          "checkpoint.keep=30"};
constexpr int64_t kSteps = 4;
constexpr const char* kShared = "train.sharding=OPTIMIZER_STATE";

class Gpu : public TinyRun {
 protected:
  template <typename... Settings>
  static Arguments With(const Settings&... more) {
    Arguments settings = kSettings;
    (settings.push_back(more), ...);
    return settings;
  }
  static StartOptions OnGpu(int ranks = 1) {
    const char* program = std::getenv("SYNTRA_TEST_GPU_PROGRAM");
    return {.program = program ? program : SYNTRA_GPU_BINARY, .ranks = ranks};
  }

  void TrainOnGpu(const std::string& name, const Arguments& settings = With("train.device=CUDA"),
                  int ranks = 1) const {
    Train(name, settings, OnGpu(ranks));
  }
  // Copies a run and its checkpoints up to `step`.
  void Fork(const std::string& from, const std::string& to, int64_t step) const {
    std::filesystem::copy(Directory(from), Directory(to), std::filesystem::copy_options::recursive);
    for (int64_t later = step + 1; later <= kSteps; ++later) RemoveAll(CheckpointPath(to, later));
    std::filesystem::remove(Directory(to) / "STATUS");
  }
};

TEST_F(Gpu, TrainsAsTheCpuDoes) {
  Train("cpu", With("train.device=CPU"));
  TrainOnGpu("gpu");
  ExpectSameCurve("cpu", "gpu", kSteps, 2e-6);
  ExpectSameParameters("cpu", "gpu", 1, 1e-6);
}

TEST_F(Gpu, GoesOnWhereTheCpuStoppedAndTheOtherWayRound) {
  Train("cpu", With("train.device=CPU"));
  TrainOnGpu("gpu");
  Fork("cpu", "cpu_then_gpu", 2);
  TrainOnGpu("cpu_then_gpu");
  ExpectSameCurve("cpu", "cpu_then_gpu", kSteps, 2e-6);
  Fork("gpu", "gpu_then_cpu", 2);
  Train("gpu_then_cpu", With("train.device=CPU"));
  ExpectSameCurve("gpu", "gpu_then_cpu", kSteps, 2e-6);
  Fork("gpu", "gpu_then_gpu", 2);
  TrainOnGpu("gpu_then_gpu");
  EXPECT_EQ(Trace(Directory("gpu_then_gpu"), kSteps), Trace(Directory("gpu"), kSteps));
}

TEST_F(Gpu, TwoRanksOnOneGpuAreOneRank) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  TrainOnGpu("one");
  TrainOnGpu("two", With("train.device=CUDA"), 2);
  EXPECT_EQ(Trace(Directory("two"), kSteps), Trace(Directory("one"), kSteps));
  TrainOnGpu("shared", With("train.device=CUDA", kShared), 2);
  EXPECT_EQ(Trace(Directory("shared"), kSteps), Trace(Directory("one"), kSteps));
}

// Summed bucket by bucket beside the backward half, which FAST does.
TEST_F(Gpu, TwoRanksSumGradientsInBuckets) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Arguments fast = With("train.device=CUDA", "train.reduction=FAST");
  TrainOnGpu("one", fast);
  Arguments profiled = fast;
  profiled.push_back("train.profile={ first_step: 2 steps: 2 }");
  TrainOnGpu("two", profiled, 2);
  ExpectSameCurve("one", "two", kSteps, 2e-6);
  ExpectSameParameters("one", "two", 1, 1e-6);
  TrainOnGpu("shared", With("train.device=CUDA", "train.reduction=FAST", kShared), 2);
  // Which is also: the profile changed no bit.
  EXPECT_EQ(Trace(Directory("shared"), kSteps), Trace(Directory("two"), kSteps));
  for (const int rank : {0, 1}) {
    const std::vector<ProfileEvent> events = ProfileEvents(Directory("two"), rank);
    EXPECT_EQ(StepsOf(events, kTrainingLane, "step"), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(CountOf(events, "forward"), 4);
    EXPECT_GE(CountOf(events, "sum of gradients starts"), 2);
    std::set<std::string> around;  // the ops
    for (const ProfileEvent& event : events) {
      if (event.facts.contains("instruction")) around.insert(event.around);
    }
    EXPECT_EQ(around, (std::set<std::string>{"forward", "backward", "optimizer"}));
  }
}

// Two ranks with a GPU each, and the fake NCCL.
class TwoRanks : public Gpu {
 protected:
  static constexpr int64_t kFewSteps = 3;

  void SetUp() override {
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    if (OnGpu().program != SYNTRA_GPU_BINARY) GTEST_SKIP() << "the fake NCCL needs simulated GPUs";
    Gpu::SetUp();
  }
  Outcome TrainTwo(const std::string& name, const std::string& reduction, int gpus,
                   const std::string& fault = "none", const std::string& sharding = "NONE") const {
    StartOptions options = OnGpu(2);
    options.environment = {std::string("LD_LIBRARY_PATH=") + SYNTRA_FAKE_NCCL_FOLDER,
                           fmt::format("SYNTRA_SIMT_GPUS={}", gpus), "SYNTRA_FAKE_NCCL=" + fault};
    const Arguments settings =
        With("train.device=CUDA", "train.reduction=" + reduction, "train.sharding=" + sharding,
             fmt::format("train.steps={}", kFewSteps));
    return Run(Pretrain(name, settings), options);
  }
};

TEST_F(TwoRanks, SumByNcclWhereEachHasAGpuAndTheOrderIsOpen) {
  const Outcome nccl = TrainTwo("nccl", "FAST", 2), exact = TrainTwo("exact", "EXACT", 2),
                shared = TrainTwo("shared", "FAST", 1);
  EXPECT_TRUE(nccl.Says("NCCL 2.28.9 sums the gradients")) << nccl.err;
  EXPECT_TRUE(exact.Says("not NCCL: rank 0: train.reduction EXACT fixes")) << exact.err;
  EXPECT_TRUE(shared.Says("not NCCL: ranks 0 and 1 share a GPU")) << shared.err;
  ExpectSameCurve("nccl", "exact", kFewSteps, 2e-6);
  ExpectSameCurve("nccl", "shared", kFewSteps, 2e-6);
  EXPECT_EQ(TrainTwo("sharded", "FAST", 2, "none", "OPTIMIZER_STATE").code, 0);
  ExpectSameCurve("nccl", "sharded", kFewSteps, 2e-6);
  ExpectSameParameters("nccl", "sharded", kFewSteps, 1e-5);
}

TEST_F(TwoRanks, EndWhenNcclLosesOneAndSaveNothingOfTheStep) {
  EXPECT_EQ(TrainTwo("whole", "FAST", 2).code, 0);
  const Outcome lost = TrainTwo("lost", "FAST", 2, "lost");
  EXPECT_EQ(lost.code, 7) << lost.err;
  EXPECT_TRUE(lost.Says("error: NCCL lost a rank: remote process exited")) << lost.err;
  ExpectSameParameters("whole", "lost", NewestStep("lost"), 0);
}

TEST_F(Gpu, EvaluatesAndGeneratesAsTheCpuDoes) {
  Train("cpu", With("train.device=CPU"));
  const auto on = [&](const Arguments& arguments, const std::string& device) {
    Arguments all = arguments;
    for (const std::string& word : {std::string("--checkpoint"), Directory("cpu").string(),
                                    std::string("--set"), "train.device=" + device}) {
      all.push_back(word);
    }
    const Outcome outcome = Run(all, OnGpu());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const auto cpu = ParseJson(on({"eval", "--json"}, "CPU"));
  const auto gpu = ParseJson(on({"eval", "--json"}, "CUDA"));
  EXPECT_NEAR(cpu["log_perplexity"], gpu["log_perplexity"], 1e-5);
  EXPECT_EQ(cpu["tokens"], gpu["tokens"]);
  EXPECT_EQ(on({"generate", "--samples", "2"}, "CPU"), on({"generate", "--samples", "2"}, "CUDA"));
}

TEST_F(Gpu, SaysWhatWouldFit) {
  StartOptions small = OnGpu();
  if (small.program != SYNTRA_GPU_BINARY) GTEST_SKIP() << "a GPU's memory cannot be made small";
  const Arguments large = With("train.batch_size=8", "train.micro_batch_size=8");
  const auto expect = [&](const char* memory, const char* remedy) {
    small.environment = {memory};
    const Outcome outcome = Run(Pretrain("gpu", large), small);
    EXPECT_EQ(outcome.code, 4);
    EXPECT_TRUE(outcome.Says("the run needs")) << outcome.err;
    EXPECT_TRUE(outcome.Says(remedy)) << outcome.err;
  };
  expect("SYNTRA_SIMT_MEMORY=1600000", "train.micro_batch_size=4 fits");
  expect("SYNTRA_SIMT_MEMORY=1300000", "train.recompute=LAYERS with train.micro_batch_size=8 fits");
  small.environment = {"SYNTRA_SIMT_MEMORY=100000"};
  const Outcome none = Run(Pretrain("none", large), small);
  EXPECT_EQ(none.code, 4);
  EXPECT_TRUE(none.Says("no micro-batch fits")) << none.err;
}

TEST_F(Gpu, IsRefusedWhereItOrItsDriverIsTooOld) {
  StartOptions old = OnGpu();
  if (old.program != SYNTRA_GPU_BINARY) GTEST_SKIP() << "what a GPU is cannot be set";
  const auto expect = [&](const char* setting, const char* reason) {
    old.environment = {setting};
    const Outcome outcome = Run(Pretrain("gpu", With("train.device=CUDA")), old);
    EXPECT_EQ(outcome.code, 4);
    EXPECT_TRUE(outcome.Says(reason)) << outcome.err;
    EXPECT_TRUE(outcome.Says("train.device: CPU")) << outcome.err;
  };
  expect("SYNTRA_SIMT_CAPABILITY=75", "has compute capability 7.5; the kernels need 8.0");
  expect("SYNTRA_SIMT_DRIVER=12000", "supports CUDA 12.0; the kernels need CUDA 12.1");
}

TEST_F(Gpu, IsSaidToBeMissing) {
  StartOptions none = OnGpu();
  none.environment = {"SYNTRA_SIMT_GPUS=0", "CUDA_VISIBLE_DEVICES="};
  const Outcome outcome = Run(Pretrain("gpu", With("train.device=CUDA")), none);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(outcome.Says("no GPU to compute on")) << outcome.err;
  EXPECT_TRUE(outcome.Says("train.device: CPU")) << outcome.err;
  // Who leaves the choice to the program computes on the CPU.
  Train("auto", kSettings, none);
}

}  // namespace
}  // namespace syntra
