// SPDX-License-Identifier: Apache-2.0
// A rank's replica takes the memory that the plan says: alone, and as one of four that share the
// optimizer's state.
#include "train/replica.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "config/config.h"
#include "kernels/tested.h"
#include "train/sizes.h"

namespace syntra {
namespace {

// Large enough on the host that what else a process holds does not count.
Config ConfigFor(const Device& device, const std::string& sharding) {
  const bool large = device.is_host();
  return ParseConfig(
      "x",
      fmt::format("model {{ width: {} encoder_layers: 2 decoder_layers: 2 vocabulary_size: {} }} "
                  "data {{ input_length: 16 }} "
                  "train {{ batch_size: 4 micro_batch_size: 1 sharding: {} device: CPU }} "
                  "optimizer {{ kind: ADAMW }}",
                  large ? 512 : 32, large ? 32000 : 1000, sharding),
      {}, kForModel);
}

// That the device holds, or of the host's memory this process.
double HeldBytes(const Device& device) {
  if (!device.is_host()) return static_cast<double>(device.peak_bytes());
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE));
}

Batch SomeBatch(const RunSizes& sizes) {
  Batch batch(sizes.rows, sizes.input_length, sizes.target_length);
  for (const char* name : {"encoder_ids", "decoder_ids", "targets"}) {
    std::ranges::fill(batch[name], 7);
  }
  for (const char* name : {"encoder_segments", "decoder_segments"}) {
    std::ranges::fill(batch[name], 1);
  }
  return batch;
}

double PlannedOverMeasured(const std::string& sharding) {
  Backend& backend = FastBackend();
  const Config config = ConfigFor(backend.device(), sharding);
  const RunSizes sizes = RunSizesOf(config, 4, backend);
  const Batch batch = SomeBatch(sizes);
  const double before = HeldBytes(backend.device());
  Replica replica(TrainingPlan::Of(config, 4, backend.device()), 0, backend);
  replica.InitializeParameters(1);
  replica.Differentiate(batch, {}, Gradients::kReplace);
  replica.Update({.step = 0, .rate = 0.01});
  EXPECT_FALSE(replica.Outcome().skipped);
  return sizes.total_bytes() / (HeldBytes(backend.device()) - before);
}

// In a process of its own, which has not held memory before.
void ExpectAsPlanned(const std::string& sharding) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto measure = [&] {
    const double ratio = PlannedOverMeasured(sharding);
    fmt::print(stderr, "planned over measured: {}\n", ratio);
    std::exit(std::abs(ratio - 1) < 0.03 ? 0 : 1);
  };
  EXPECT_EXIT(measure(), testing::ExitedWithCode(0), "planned over measured");
}

TEST(ReplicaMemory, IsWhatThePlanSaysAlone) { ExpectAsPlanned("NONE"); }

TEST(ReplicaMemory, IsWhatThePlanSaysOfASharedState) { ExpectAsPlanned("OPTIMIZER_STATE"); }

TEST(ReplicaMemory, OfASharedStateIsLess) {
  Backend& backend = FastBackend();
  const RunSizes whole = RunSizesOf(ConfigFor(backend.device(), "NONE"), 4, backend);
  const RunSizes shared = RunSizesOf(ConfigFor(backend.device(), "OPTIMIZER_STATE"), 4, backend);
  EXPECT_NEAR(shared.optimizer_bytes, whole.optimizer_bytes / 4, 0.01 * whole.optimizer_bytes);
  EXPECT_EQ(shared.checkpoint_bytes, whole.checkpoint_bytes);
}

}  // namespace
}  // namespace syntra
