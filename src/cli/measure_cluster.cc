// SPDX-License-Identifier: Apache-2.0
#include "cli/measure_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/median.h"
#include "base/memory_limits.h"
#include "base/text.h"
#include "cli/step_bench.h"
#include "core/thread.h"
#include "plan/step_work.h"
#include "train/threads.h"

namespace syntra {
namespace {

constexpr int kWarmUps = 2, kSteps = 9;
constexpr int64_t kLongSum = int64_t{64} << 20, kShortSum = int64_t{16} << 10;  // bytes
constexpr size_t kWritten = size_t{64} << 20;
constexpr char kInside[] = "shared_memory";

struct StepSeconds {
  double compute = 0, update = 0;
};

// Seconds of one micro-batch and an update, the ranks' mean; they begin each step together.
StepSeconds MeasureSteps(StepBench& bench, Communicator& ranks,
                         const std::function<void()>& keep_alive) {
  std::vector<double> compute, update;
  for (int step = 0; step < kWarmUps + kSteps; ++step) {
    keep_alive();
    ranks.Barrier();
    std::array<double, 2> seconds = bench.Step();
    ranks.AllReduceSum(std::span(seconds));
    if (step < kWarmUps) continue;
    compute.push_back(seconds[0] / ranks.size());
    update.push_back(seconds[1] / ranks.size());
  }
  return {Median(compute), Median(update)};
}

double MeasureSum(Communicator& ranks, int64_t bytes, int times) {
  const Buffer memory(bytes, "a measured sum");
  const TensorView view{memory.data(), {DType::kF32, {bytes / int64_t{sizeof(float)}}}};
  const auto exposed = ranks.Expose(view);  // as in training
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    std::ranges::fill(view.As<float>(), 1.0f);
    ranks.Barrier();
    const auto start = Clock::now();
    ranks.AllReduceSum(view);
    seconds.push_back(SecondsSince(start));
  }
  double median = Median(seconds);
  ranks.AllReduceMax(std::span(&median, 1));
  return median;
}

// The two figures of HostNetwork that give both sums: a short one, which is not exposed, is two
// barriers and next to no bytes.
LinkConfig MeasureSums(Communicator& ranks) {
  const double shortest = MeasureSum(ranks, kShortSum, 51),
               longest = MeasureSum(ranks, kLongSum, 9);
  const HostNetwork free{.inside = {0, 1e9}, .between = {}};  // no latency, 1 GB/s
  const HostNetwork tick{.inside = {1, 1e300}, .between = {}};
  const Layout layout{1, ranks.size()};
  const double barriers = tick.AllReduceSeconds(layout, kLongSum);
  // Ranks meet faster in the midst of a long sum than at a short one.
  const double latency = std::min(shortest / 2, 0.5 * longest / barriers);
  LinkConfig link;
  link.set_name(kInside);
  link.set_latency_microseconds(1e6 * latency);
  link.set_gigabytes_per_second(free.AllReduceSeconds(layout, kLongSum) /
                                (longest - latency * barriers));
  link.set_source("sums of 16 KiB and 64 MiB");
  return link;
}

double MeasureStorage(const Path& directory) {
  const Path file = directory / ("measured-" + std::to_string(getpid()));
  const std::string content(kWritten, 'x');
  std::vector<double> seconds;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    ReplaceFileDurably(file, content);
    seconds.push_back(SecondsSince(start));
  }
  std::filesystem::remove(file);
  return static_cast<double>(kWritten) / Median(seconds);
}

double NodeMemory() {
  double bytes = 0;
  for (const MemoryLimit& limit : MemoryLimits()) {
    if (limit.shared) {
      const auto there = static_cast<double>(limit.bytes);
      bytes = bytes > 0 ? std::min(bytes, there) : there;
    }
  }
  return bytes;
}

// The configuration with only one rank's part of the batch.
Config OfOneRank(Config config, int ranks) {
  const BatchPartition partition = BatchPartition::Of(config.train(), ranks);
  config.mutable_train()->set_batch_size(static_cast<int32_t>(partition.rows_per_rank));
  config.mutable_train()->set_device(TrainConfig::CPU);
  config.mutable_train()->set_sharding(TrainConfig::NONE);
  return config;
}

}  // namespace

ClusterConfig MeasureCluster(const Config& config, Communicator& ranks, const Path& directory,
                             const std::function<void()>& keep_alive) {
  if (config.train().device() == TrainConfig::CUDA) {
    Fail(ExitCode::kConfig, "--measure measures CPUs; set train.device=CPU");
  }
  if (ranks.ranks_on_host() != ranks.size()) {
    Fail(ExitCode::kConfig, "--measure measures one host; start all ranks there");
  }
  const int cores = ProcessorCount();  // before each rank takes its own
  const Config one = OfOneRank(config, ranks.size());
  StepBench bench(one, &ranks);
  ChooseThreads(config.train());
  const StepWork work = StepWorkOf(bench.plan());
  const StepSeconds seconds = MeasureSteps(bench, ranks, keep_alive);

  ClusterConfig cluster;
  const double bandwidth = ranks.size() * work.update_bytes / seconds.update;
  const double mine = bandwidth / ranks.size();
  // The time without that for the parameters' own bytes, but at least half: they may have been in a
  // cache.
  const double products =
      std::max(seconds.compute - work.weight_bytes / mine, 0.5 * seconds.compute);
  const double used = std::min<double>(ThreadCount() * ranks.size(), cores);
  cluster.set_cores_per_node(cores);
  const double gigaflops = 1e-9 * ranks.size() * work.flops / products / used;
  config.train().precision() == TrainConfig::BF16 ? cluster.set_gigaflops(gigaflops)
                                                  : cluster.set_gigaflops_fp32(gigaflops);
  cluster.set_memory_gigabytes_per_second(1e-9 * bandwidth);
  cluster.set_memory_gibibytes(NodeMemory() * 0x1p-30);
  if (ranks.size() > 1) {
    *cluster.add_link() = MeasureSums(ranks);
    cluster.set_inside_node(kInside);
  }
  if (ranks.rank() == 0) {
    cluster.set_storage_gigabytes_per_second(1e-9 * MeasureStorage(directory));
  }
  cluster.set_name(HostName());
  cluster.set_source(fmt::format("measured by syntra plan --measure with {} of {}",
                                 Counted(ranks.size(), "rank"), Counted(ThreadCount(), "thread")));
  return cluster;
}

}  // namespace syntra
