// SPDX-License-Identifier: Apache-2.0
// Runs of an executable allocate no memory.
#include <gtest/gtest.h>

#include "core/thread.h"
#include "kernels/tested.h"
#include "model/allocation_counter.h"
#include "model/model_trial.h"

namespace syntra {
namespace {

class Allocations : public testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(Allocations, NoneInARun) {
  // The pool's threads start once a process.
  ParallelFor(1 << 20, 1, [](int64_t, int64_t) {});
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    ModelSetting setting{.config = TinyModel(GetParam().second, "dropout: 0.1")};
    setting.activations = activations;
    ModelTrial trial(setting, RandomBatch({2, 9, 6}, 32), FastBackend());
    trial.executable().Run();  // threads make their own objects the first time they are asked
    for (int run = 1; run < 3; ++run) {
      const int64_t before = AllocationCount();
      trial.executable().Run();
      EXPECT_EQ(AllocationCount() - before, 0) << NameOf(activations) << ", run " << run;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Model, Allocations, testing::ValuesIn(TrialMixers()),
                         [](const auto& info) { return info.param.first; });

TEST(Counter, Counts) {
  const int64_t before = AllocationCount();
  const std::vector<std::string> texts(3, std::string(100, 'x'));
  EXPECT_EQ(texts.back().size(), 100u);
  EXPECT_GE(AllocationCount() - before, 4);
}

}  // namespace
}  // namespace syntra
