// SPDX-License-Identifier: Apache-2.0
// What the tolerances and the random operands of the sweep do not show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/buffer.h"
#include "kernels/attention_call.h"
#include "kernels/bfloat16.h"
#include "kernels/op.h"
#include "tests/kernels/tested.h"

namespace syntra {
namespace {

// The operands of a call, in memory as BindTested demands it.
class Operands {
 public:
  explicit Operands(const std::vector<TensorType>& types) : types_(types) {
    for (const TensorType& type : types) {
      const size_t bytes = type.present() ? type.bytes() : 0;
      memory_.emplace_back(kTestedGuard + bytes + kTestedGuard, "operand");
      pointers_.push_back(type.present() ? memory_.back().data() + kTestedGuard : nullptr);
    }
  }

  std::span<void* const> pointers() const { return pointers_; }
  template <typename T>
  std::span<T> As(int i) {
    return {static_cast<T*>(pointers_[i]), static_cast<size_t>(types_[i].shape.size())};
  }

 private:
  std::vector<TensorType> types_;
  std::vector<Buffer> memory_;
  std::vector<void*> pointers_;
};

// The outputs of the backend's kernel.
Operands OutputsOf(const char* name, const Attributes& attributes,
                   const std::vector<TensorType>& types, const Operands& inputs) {
  const Op& op = GetOp(name);
  OpCall call{attributes, types, op.infer(attributes, types), {}};
  call.accumulate.assign(call.outputs.size(), false);
  const std::optional<BoundKernel> kernel = BindTested(op, call);
  SYNTRA_CHECK(kernel, "no kernel of {}", name);
  Operands outputs(call.outputs);
  const Buffer workspace(kTestedGuard + kernel->workspace_bytes + kTestedGuard, "workspace");
  kernel->run({inputs.pointers(), outputs.pointers(), workspace.data() + kTestedGuard});
  EXPECT_EQ(TakeComplaints(), "");
  return outputs;
}

// Not quite random numbers of different sizes.
float NumberAt(int64_t i) { return std::sin(static_cast<float>(i) * 0.7f) * 3.0f; }

// The backward pass reads the stored sum, so the forward pass norms that, too.
TEST(AddNorm, NormsTheSumAsItIsStored) {
  for (const int64_t width : {19, 64, 2051}) {
    SCOPED_TRACE(width);
    const TensorType a{DType::kBF16, {2, 3, width}};
    const std::vector<TensorType> types = {a, a, {DType::kF32, {width}}, {DType::kNone, {}}};
    Operands inputs(types);
    const auto x = inputs.As<BFloat16>(0), y = inputs.As<BFloat16>(1);
    for (int64_t i = 0; i < std::ssize(x); ++i) {
      x[i] = ToBFloat16(NumberAt(i));
      y[i] = ToBFloat16(NumberAt(3 * i + 1) / 100.0f);
    }
    std::ranges::fill(inputs.As<float>(2), 1.0f);
    Operands outputs =
        OutputsOf("add_norm",
                  {{"epsilon", 1e-6}, {"rate", 0.0}, {"site", int64_t{0}}, {"per_element", false}},
                  types, inputs);
    const auto sum = outputs.As<BFloat16>(0), normed = outputs.As<BFloat16>(1);
    const auto inverse_rms = outputs.As<float>(2);
    for (int64_t i = 0; i < std::ssize(sum); ++i) {
      const BFloat16 want = ToBFloat16(ToFloat(sum[i]) * inverse_rms[i / width]);
      ASSERT_EQ(ToFloat(normed[i]), ToFloat(want)) << "element " << i;
    }
  }
}

// Rows of the cache that are not written yet may hold anything.
TEST(Attention, ADecodeStepReadsNoLaterKeys) {
  using namespace attention;
  constexpr int64_t kBatch = 2, kKeys = 9, kHeads = 2, kWidth = 24;
  constexpr int32_t kStart = 4;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<TensorType> types(kInputCount, {DType::kNone, {}});
    types[kQuery] = {dtype, {kBatch, 1, kWidth}};
    types[kKey] = types[kValue] = {dtype, {kBatch, kKeys, kWidth}};
    types[kQueryStart] = {DType::kI32, {1}};
    Operands inputs(types);
    inputs.As<int32_t>(kQueryStart)[0] = kStart;
    const auto fill = [&](int input, int64_t rows) {
      for (int64_t i = 0; i < types[input].shape.size(); ++i) {
        const bool later = i / kWidth % rows > kStart;
        const float value = later ? std::numeric_limits<float>::quiet_NaN() : NumberAt(i);
        if (dtype == DType::kF32) inputs.As<float>(input)[i] = value;
        if (dtype == DType::kBF16) inputs.As<BFloat16>(input)[i] = ToBFloat16(value);
      }
    };
    fill(kQuery, 1);
    fill(kKey, kKeys);
    fill(kValue, kKeys);
    Operands outputs =
        OutputsOf("attention", AttributesOf(kHeads, {.causal = true}), types, inputs);
    for (int64_t i = 0; i < kBatch * kWidth; ++i) {
      const float y =
          dtype == DType::kF32 ? outputs.As<float>(kY)[i] : ToFloat(outputs.As<BFloat16>(kY)[i]);
      EXPECT_TRUE(std::isfinite(y)) << "element " << i;
    }
  }
}

TEST(Activation, ExpIsFiniteAsLongAsAFloatHoldsIt) {
  const std::vector<float> numbers = {87.0f, 88.0f,       88.1f,  88.5f,
                                      88.7f, 88.7228317f, 88.73f, 200.0f};
  const std::vector<TensorType> types = {{DType::kF32, {std::ssize(numbers)}}};
  Operands inputs(types);
  std::ranges::copy(numbers, inputs.As<float>(0).begin());
  Operands outputs = OutputsOf("activation", {{"kind", std::string("exp")}}, types, inputs);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto want = static_cast<float>(std::exp(static_cast<double>(numbers[i])));
    const float got = outputs.As<float>(0)[i];
    EXPECT_TRUE(got == want || std::abs(got - want) < want * 1e-6f)
        << "exp(" << numbers[i] << ") is " << got << ", not " << want;
  }
}

// A maximum passes over NaN; a model that gives one must not seem to have chosen a token.
TEST(LinearArgmax, IsNoTokenWhereALogitIsNotFinite) {
  constexpr int64_t kRows = 4, kWidth = 19, kVocabulary = 3001;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TensorType> types = {{DType::kF32, {kRows, 1, kWidth}},
                                         {DType::kF32, {kVocabulary, kWidth}}};
  Operands inputs(types);
  const std::span<float> hidden = inputs.As<float>(0), embedding = inputs.As<float>(1);
  std::ranges::fill(hidden, 1.0f);
  hidden[1 * kWidth + 5] = kNaN;
  hidden[2 * kWidth + 5] = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < embedding.size(); ++i) embedding[i] = NumberAt(static_cast<int64_t>(i));
  std::fill_n(embedding.begin() + 2000 * kWidth, kWidth, 4.0f);
  const auto best = [&] {
    const Operands outputs = OutputsOf("linear_argmax", {{"scale", 1.0}}, types, inputs);
    const auto* ids = static_cast<const int32_t*>(outputs.pointers()[0]);
    return std::vector<int32_t>(ids, ids + kRows);
  };
  EXPECT_EQ(best(), (std::vector<int32_t>{2000, -1, -1, 2000}));
  embedding[2999 * kWidth + 3] = kNaN;
  EXPECT_EQ(best(), std::vector<int32_t>(kRows, -1));
}

}  // namespace
}  // namespace syntra
