// SPDX-License-Identifier: Apache-2.0
// Ranks that share the optimizer's state train what ranks do that have all of it, bit for bit, also
// where gradients are summed in many buckets. Usage, under mpirun: sharing_test [host|nccl]. With
// nccl each rank has a simulated GPU. All ranks run the same cases.
#include <gtest/gtest.h>

#include <map>

#include "checkpoint/layout.h"
#include "config/config.h"
#include "dist/all_ranks.h"
#include "dist/nccl.h"
#include "kernels/cuda.h"
#include "tests/base/kinds.h"
#include "train/rounded_copies.h"
#include "train/step.h"

namespace syntra {
namespace {

Communicator* ranks = nullptr;
Backend* backend = nullptr;

// The tensors of a checkpoint.
using Tensors = std::map<std::string, std::vector<float>>;

// One kind stands for all in bf16.
Config ConfigFor(OptimizerConfig::Kind kind, const std::string& sharding) {
  return ParseConfig(
      "x",
      fmt::format("model {{ width: 32 encoder_layers: 1 decoder_layers: 1 "
                  "feed_forward {{ width: 64 }} vocabulary_size: 300 dropout: 0.1 "
                  "mixer {{ attention {{ heads: 2 }} }} "
                  "cross_attention {{ heads: 2 }} }} data {{ input_length: 8 }} "
                  "train {{ batch_size: {} sharding: {} precision: {} }} "
                  "optimizer {{ kind: {} min_factored_size: 16 clip_norm: 0.1 }}",
                  2 * ranks->size(), sharding, kind == OptimizerConfig::ADAMW_RMS ? "BF16" : "FP32",
                  OptimizerConfig::Kind_Name(kind)),
      {}, kForModel);
}

// With the gradients in buckets of so many blocks for each rank; 0: as a run has them.
std::shared_ptr<const TrainingPlan> PlanFor(OptimizerConfig::Kind kind, const std::string& sharding,
                                            int64_t blocks) {
  PlannedRanks planned{.ranks = ranks->size(), .backend = backend};
  if (blocks > 0) planned.bucket_elements = blocks * ranks->size() * ParameterStore::kBlock;
  return TrainingPlan::Make(ConfigFor(kind, sharding), planned);
}

Batch BatchOf(const TrainingPlan& plan, int64_t step) {
  const BatchShape& shape = plan.shape();
  Batch batch(shape.rows, shape.input_length, shape.target_length);
  batch.first_example = step * plan.partition().batch_size + ranks->rank() * batch.rows;
  for (const char* name : {"encoder_ids", "decoder_ids", "targets"}) {
    std::vector<int32_t>& ids = batch[name];
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<int32_t>(2 + (7 * i + 31 * batch.first_example) % 290);
    }
  }
  for (const char* name : {"encoder_segments", "decoder_segments"}) {
    std::ranges::fill(batch[name], 1);
  }
  return batch;
}

// What ranks share is added up: where a rank holds nothing it has zeros.
Tensors Collect(Replica& replica) {
  Tensors tensors;
  for (const HostTensor& tensor : replica.FetchTensors()) {
    const bool is_shared =
        replica.plan().shards() > 1 && !tensor.name.starts_with(kParametersGroup);
    std::vector<float>& all = tensors[tensor.name];
    all.resize(tensor.type.shape.size());
    if (is_shared || ranks->rank() == 0) {
      const float* from = tensor.values;
      for (const ElementRange& part : tensor.held) {
        std::copy_n(from, part.size(), all.begin() + part.begin);
        from += part.size();
      }
    }
    ranks->AllReduceSum({all.data(), tensor.type});
  }
  return tensors;
}

// A few steps.
Tensors Train(OptimizerConfig::Kind kind, const std::string& sharding, int64_t blocks) {
  Replica replica(PlanFor(kind, sharding, blocks), ranks->rank());
  replica.InitializeParameters(1);
  StepRunner runner(replica, *ranks);
  for (int64_t step = 0; step < 3; ++step) {
    const Batch batch = BatchOf(replica.plan(), step);
    EXPECT_FALSE(runner.Run({batch}, step, {}).skipped);
  }
  runner.FinishGathers();
  ExpectCopiesAreRounded(replica);
  return Collect(replica);
}

class Sharing : public testing::TestWithParam<OptimizerConfig::Kind> {};

TEST_P(Sharing, ChangesNoBit) {
  const Tensors alone = Train(GetParam(), "NONE", 0);
  for (const auto& [sharding, blocks] :
       {std::pair{"NONE", 3}, {"OPTIMIZER_STATE", 0}, {"OPTIMIZER_STATE", 3}}) {
    const Tensors shared = Train(GetParam(), sharding, blocks);
    ASSERT_EQ(shared.size(), alone.size());
    for (const auto& [name, values] : alone) {
      EXPECT_EQ(shared.at(name), values)
          << name << ", " << sharding << ", " << blocks << " blocks a bucket and rank";
    }
  }
}

// Every rank reads its parts of what all have saved.
TEST_P(Sharing, ReadsWhatWasSaved) {
  Replica replica(PlanFor(GetParam(), "OPTIMIZER_STATE", 1), ranks->rank());
  const auto value = [](const std::string& name, size_t i) {
    return static_cast<float>(name.size() * 1000 + i % 997);
  };
  for (const HostTensor& tensor : replica.HostTensors()) {
    tensor.Fill([&](TensorView whole) {
      const std::span<float> values = whole.As<float>();
      for (size_t i = 0; i < values.size(); ++i) values[i] = value(tensor.name, i);
    });
  }
  replica.Commit();
  for (const auto& [name, values] : Collect(replica)) {
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], value(name, i)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Sharing,
                         testing::ValuesIn(EnumValues<OptimizerConfig::Kind>()),
                         [](const auto& info) { return OptimizerConfig::Kind_Name(info.param); });

int TestOnGpu() {
  const std::unique_ptr<Backend> gpu = OpenGpu(ranks->rank_on_host());
  NcclCommunicator nccl(*ranks, gpu->device(), nccl::Load());
  ranks = &nccl;
  backend = gpu.get();
  return TestOnAllRanks(*ranks);
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  using namespace syntra;
  testing::InitGoogleTest(&argc, argv);
  const std::unique_ptr<Communicator> host = MakeCommunicator(&argc, &argv);
  ranks = host.get();
  backend = &CpuBackend();
  return argc > 1 && std::string_view(argv[1]) == "nccl" ? TestOnGpu() : TestOnAllRanks(*ranks);
}
