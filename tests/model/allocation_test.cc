// SPDX-License-Identifier: Apache-2.0
// Runs of an executable allocate no memory.
#include <gtest/gtest.h>

#include "core/thread.h"
#include "kernels/op.h"
#include "kernels/packed_weights.h"
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

// As in decoding: products find their weights where an earlier run has packed them.
TEST(PackedProducts, AllocateNothing) {
  constexpr int64_t kWidth = 64, kColumns = 128;
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const TensorType x{type, {2, 1, kWidth}}, weights{DType::kF32, {kWidth, kColumns}};
    const TensorType embedding{DType::kF32, {kColumns, kWidth}};
    PackedWeights packed;
    const auto expect_none = [&](const char* name, const Attributes& attributes,
                                 const TensorType& parameter) {
      const Op& op = GetOp(name);
      const std::vector<TensorType> types = {x, parameter};
      const OpCall call{attributes, types, op.infer(attributes, types), {false}, &packed};
      const BoundKernel kernel = *FastBackend().Bind(op, call);
      const Buffer in(x.bytes(), "x"), by(parameter.bytes(), "a parameter"),
          out(call.outputs[0].bytes(), "y"), workspace(kernel.workspace_bytes + 1, "a workspace");
      void *const inputs[] = {in.data(), by.data()}, *const outputs[] = {out.data()};
      kernel.run({inputs, outputs, workspace.data()});
      const int64_t before = AllocationCount();
      kernel.run({inputs, outputs, workspace.data()});
      EXPECT_EQ(AllocationCount() - before, 0) << name << " of " << NameOf(type);
      packed.Clear();
    };
    expect_none("matmul",
                {{"transpose_a", false}, {"transpose_b", false}, {"dtype", std::string("f32")}},
                weights);
    expect_none("linear_argmax", {{"scale", 1.0}}, embedding);
  }
}

TEST(Counter, Counts) {
  const int64_t before = AllocationCount();
  const std::vector<std::string> texts(3, std::string(100, 'x'));
  EXPECT_EQ(texts.back().size(), 100u);
  EXPECT_GE(AllocationCount() - before, 4);
}

}  // namespace
}  // namespace syntra
