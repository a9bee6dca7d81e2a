// SPDX-License-Identifier: Apache-2.0
// Sizes that int cannot count: kernels refuse them, or leave them to others, before anything runs.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "kernels/attention_call.h"
#include "kernels/cuda/matmul_hopper.h"
#include "kernels/op.h"

namespace syntra {
namespace {

using namespace attention;

constexpr int64_t kTooMany = int64_t{1} << 31;

bool Binds(const char* name, const Attributes& attributes, const std::vector<TensorType>& inputs) {
  const Op& op = GetOp(name);
  OpCall call{attributes, inputs, op.infer(attributes, inputs), {}};
  call.accumulate.assign(call.outputs.size(), false);
  return BindCudaKernel(op, call).has_value();
}

std::vector<TensorType> AttentionInputs(int64_t batch, int64_t rows, int64_t heads, DType dtype) {
  std::vector<TensorType> inputs(kInputCount, {DType::kNone, {}});
  inputs[kQuery] = inputs[kKey] = inputs[kValue] = {dtype, {batch, rows, heads * 64}};
  return inputs;
}

TEST(Attention, RefusesMoreRowsThanIntCanCount) {
  const auto binds = [](int64_t batch, int64_t rows, int64_t heads) {
    return Binds("attention", AttributesOf(heads, {}),
                 AttentionInputs(batch, rows, heads, DType::kBF16));
  };
  EXPECT_TRUE(binds(64, 65536, 256));
  EXPECT_FALSE(binds(1, kTooMany / 256, 256));      // rows of all heads of an example
  EXPECT_FALSE(binds(kTooMany / 64 / 4, 256, 64));  // tiles of all examples
  EXPECT_FALSE(binds(1, 64, kTooMany / 128 / 64));  // elements of the rows of a tile
}

TEST(AttentionGrad, RefusesMoreRowsThanIntCanCount) {
  const auto binds = [](int64_t batch, int64_t rows, int64_t heads) {
    std::vector<TensorType> inputs = AttentionInputs(batch, rows, heads, DType::kBF16);
    inputs.resize(kGradientInputCount);
    inputs[kGivenY] = inputs[kGivenDY] = inputs[kValue];
    inputs[kGivenLogSumExp] = {DType::kF32, {batch, heads, rows}};
    return Binds("attention_grad", AttributesOf(heads, {}), inputs);
  };
  EXPECT_TRUE(binds(64, 65536, 256));
  EXPECT_FALSE(binds(1, kTooMany / 256, 256));
  EXPECT_FALSE(binds(kTooMany / 64 / 4, 256, 64));
}

TEST(EmbeddingGrad, RefusesMorePositionsThanIntCanCount) {
  const auto binds = [](int64_t rows) {
    const std::vector<TensorType> inputs = {{DType::kI32, {rows, 1024}},
                                            {DType::kBF16, {rows, 1024, 8}}};
    return Binds("embedding_grad", {{"vocabulary", int64_t{256}}}, inputs);
  };
  EXPECT_TRUE(binds(kTooMany / 1024 / 8));
  EXPECT_FALSE(binds(kTooMany / 1024));
}

TEST(HopperMatmul, LeavesMoreRowsThanIntCanCountToTheLibrary) {
  MatmulCall call;
  call.problem = {
      .n = 256, .k = 128, .ab = DType::kBF16, .c = DType::kBF16, .epilogue = Epilogue::kRelu};
  call.problem.m = kTooMany - 1;
  EXPECT_TRUE(gpu::HopperServesMatmul(call));
  call.problem.m = kTooMany;
  EXPECT_FALSE(gpu::HopperServesMatmul(call));
}

}  // namespace
}  // namespace syntra
