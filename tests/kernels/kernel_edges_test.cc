// SPDX-License-Identifier: Apache-2.0
// What the tolerances and the random operands of the sweep do not show.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/buffer.h"
#include "kernels/attention_call.h"
#include "kernels/bfloat16.h"
#include "kernels/bit_mask.h"
#include "kernels/math/activation.h"
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

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The elements of an operand.
std::vector<float> NumbersOf(Operands& operands, int i, DType dtype) {
  if (dtype == DType::kF32) {
    const auto numbers = operands.As<float>(i);
    return {numbers.begin(), numbers.end()};
  }
  std::vector<float> numbers;
  for (const BFloat16 element : operands.As<BFloat16>(i)) numbers.push_back(ToFloat(element));
  return numbers;
}

void SetNumber(Operands& operands, int i, DType dtype, int64_t element, float number) {
  if (dtype == DType::kF32) operands.As<float>(i)[element] = number;
  if (dtype == DType::kBF16) operands.As<BFloat16>(i)[element] = ToBFloat16(number);
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
        SetNumber(inputs, input, dtype, i, later ? kNaN : NumberAt(i));
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

// The gradients of attention with its own results, for a table and a bias of one number each. It
// adds to all scores of a row, which changes no probability.
Operands AttentionGradients(int64_t queries, int64_t keys, float table, float bias) {
  using namespace attention;
  constexpr int64_t kHeads = 1, kWidth = 64;
  const TensorType of_queries{DType::kBF16, {1, queries, kWidth}};
  const TensorType of_keys{DType::kBF16, {1, keys, kWidth}};
  std::vector<TensorType> types(kInputCount, {DType::kNone, {}});
  types[kQuery] = of_queries;
  types[kKey] = types[kValue] = of_keys;
  types[kTable] = {DType::kF32, {1, queries, keys}};
  types[kBias] = {DType::kF32, {1, queries + keys - 1}};
  const auto fill = [&](Operands& operands) {
    for (const int input : {kQuery, kKey, kValue}) {
      const std::span<BFloat16> numbers = operands.As<BFloat16>(input);
      for (int64_t i = 0; i < std::ssize(numbers); ++i) {
        numbers[i] = ToBFloat16(NumberAt(i + input) / 8.0f);
      }
    }
    std::ranges::fill(operands.As<float>(kTable), table);
    std::ranges::fill(operands.As<float>(kBias), bias);
  };
  const Attributes attributes = AttributesOf(kHeads, {});
  Operands inputs(types);
  fill(inputs);
  Operands outputs = OutputsOf("attention", attributes, types, inputs);
  types.resize(kSharedInputs);
  types.insert(types.end(), {of_queries, {DType::kF32, {1, kHeads, queries}}, of_queries});
  Operands given(types);
  fill(given);
  std::ranges::copy(outputs.As<BFloat16>(kY), given.As<BFloat16>(kGivenY).begin());
  std::ranges::copy(outputs.As<float>(kLogSumExp), given.As<float>(kGivenLogSumExp).begin());
  const std::span<BFloat16> dy = given.As<BFloat16>(kGivenDY);
  for (int64_t i = 0; i < std::ssize(dy); ++i) dy[i] = ToBFloat16(NumberAt(5 * i + 2));
  return OutputsOf("attention_grad", attributes, types, given);
}

// Kernels may round the sum of a table and a bias, here from 100.7 to 100.5, but all of a call must
// round it alike.
TEST(Attention, BothPassesRoundATableAlike) {
  using namespace attention;
  for (const auto& [queries, keys] : {std::pair(1, 20), std::pair(70, 130), std::pair(520, 20)}) {
    SCOPED_TRACE(queries);
    Operands raised = AttentionGradients(queries, keys, 100.5f, 0.2f);
    Operands plain = AttentionGradients(queries, keys, 0.0f, 0.0f);
    for (const int output : {kQuery, kKey, kValue, kTable}) {
      const auto numbers = [output](Operands& gradients) {
        std::vector<float> all;
        if (output == kTable) {
          std::ranges::copy(gradients.As<float>(output), std::back_inserter(all));
        } else {
          for (const BFloat16 x : gradients.As<BFloat16>(output)) all.push_back(ToFloat(x));
        }
        return all;
      };
      const std::vector<float> got = numbers(raised), want = numbers(plain);
      double errors = 0.0, squares = 0.0;
      for (size_t i = 0; i < want.size(); ++i) {
        errors += std::pow(got[i] - want[i], 2.0);
        squares += std::pow(want[i], 2.0);
      }
      EXPECT_GT(squares, 0.0) << "gradient " << output;
      EXPECT_LE(errors, squares * 0x1p-12) << "gradient " << output;
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

// A NaN must show in the loss, whatever functions come before that.
TEST(Activation, OfNanIsNan) {
  scalar::ForEachActivationFunction([](const std::string& kind, auto) {
    SCOPED_TRACE(kind);
    const std::vector<TensorType> types = {{DType::kF32, {3}}};
    Operands inputs(types);
    std::ranges::copy(std::array{1.0f, kNaN, -kNaN}, inputs.As<float>(0).begin());
    Operands outputs = OutputsOf("activation", {{"kind", kind}}, types, inputs);
    const std::span<float> y = outputs.As<float>(0);
    EXPECT_TRUE(std::isfinite(y[0]) && std::isnan(y[1]) && std::isnan(y[2]))
        << y[0] << ", " << y[1] << ", " << y[2];
  });
}

// Angles of any size, each among those that are near zero, as most are in practice.
TEST(Activation, SineIsRightForAnglesOfAnySize) {
  std::vector<float> angles(77);
  for (size_t i = 0; i < angles.size(); ++i) angles[i] = NumberAt(static_cast<int64_t>(i));
  const float large[] = {38999.0f, 39001.0f,  1e5f,       -1e5f, 1e8f, 1e30f,
                         -1e30f,   kInfinity, -kInfinity, kNaN,  3e38f};
  for (size_t i = 0; i < std::size(large); ++i) angles[7 * i] = large[i];
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const TensorType type{dtype, {std::ssize(angles)}};
    Operands inputs({type, type});
    for (size_t i = 0; i < angles.size(); ++i) {
      SetNumber(inputs, 0, dtype, static_cast<int64_t>(i), angles[i]);
      SetNumber(inputs, 1, dtype, static_cast<int64_t>(i), 1.0f);
    }
    const Attributes sine = {{"kind", std::string("sine")}};
    Operands values = OutputsOf("activation", sine, {type}, inputs);
    Operands slopes = OutputsOf("activation_grad", sine, {type, type}, inputs);
    const std::vector<float> x = NumbersOf(inputs, 0, dtype), y = NumbersOf(values, 0, dtype),
                             dx = NumbersOf(slopes, 0, dtype);
    const auto expect_near = [&](float got, double want) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got)
                                   : std::abs(got - want) <= (dtype == DType::kF32 ? 3e-7 : 0x1p-8))
          << got << ", not " << want;
    };
    for (size_t i = 0; i < x.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} {}", NameOf(dtype), x[i]));
      expect_near(y[i], std::sin(static_cast<double>(x[i])));
      expect_near(dx[i], std::cos(static_cast<double>(x[i])));
    }
  }
}

TEST(Activation, LogarithmsOfTheSmallestAndTheLargest) {
  const std::pair<float, float> cases[] = {{0, -kInfinity},
                                           {-0.0f, -kInfinity},
                                           {1, 0},
                                           {1e-45f, -103.27893f},
                                           {3.4028235e38f, 88.72284f},
                                           {kInfinity, kInfinity},
                                           {-1, kNaN},
                                           {-kInfinity, kNaN},
                                           {kNaN, kNaN}};
  const TensorType type{DType::kF32, {std::ssize(cases)}};
  Operands inputs({type});
  for (size_t i = 0; i < std::size(cases); ++i) inputs.As<float>(0)[i] = cases[i].first;
  Operands outputs = OutputsOf("activation", {{"kind", std::string("log")}}, {type}, inputs);
  for (size_t i = 0; i < std::size(cases); ++i) {
    const auto [x, want] = cases[i];
    const float got = outputs.As<float>(0)[i];
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << x << ": " << got;
    } else {
      EXPECT_FLOAT_EQ(got, want) << x;
    }
  }
}

// The smallest product, one of an odd width, and one of as many tiles as Hopper GPUs have a kernel
// of their own for.
TEST(MatmulRelu, OfNanIsNan) {
  struct Sizes {
    int64_t m, n, k;
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [m, n, k] : {Sizes{1, 8, 8}, Sizes{5, 67, 19}, Sizes{1060, 1024, 72}}) {
      const std::string type(NameOf(dtype));
      SCOPED_TRACE(fmt::format("{} {} x {} x {}", type, m, n, k));
      const std::vector<TensorType> types = {{dtype, {m, k}}, {DType::kF32, {k, n}}};
      Operands inputs(types);
      const int64_t nan_row = m / 2;
      for (int64_t i = 0; i < m * k; ++i) {
        SetNumber(inputs, 0, dtype, i, i == nan_row * k + 3 ? kNaN : NumberAt(i));
      }
      for (int64_t i = 0; i < k * n; ++i) inputs.As<float>(1)[i] = NumberAt(2 * i + 1);
      Operands outputs = OutputsOf(
          "matmul_relu", {{"transpose_a", false}, {"transpose_b", false}, {"dtype", type}}, types,
          inputs);
      const std::vector<float> y = NumbersOf(outputs, 0, dtype);
      for (int64_t i = 0; i < m * n; ++i) {
        ASSERT_TRUE(i / n == nan_row ? std::isnan(y[i]) : y[i] >= 0.0f)
            << "element " << i << " is " << y[i];
      }
    }
  }
}

// So many tiles that each block of Hopper's kernel gets several, of more pieces than its ring
// holds. Sums of a few ones are exact.
TEST(MatmulRelu, OfManyTilesIsExact) {
  if (IsSimulated()) GTEST_SKIP() << "would take minutes";
  constexpr int64_t kRows = 2176, kInner = 456, kColumns = 2048;
  const auto one = [](int64_t i) { return static_cast<float>(i % 89 % 3 - 1); };
  const TensorType a{DType::kBF16, {kRows, kInner}}, b{DType::kF32, {kInner, kColumns}};
  const TensorType transposed{DType::kF32, {kColumns, kInner}};
  const Attributes plain = {{"transpose_a", false}, {"transpose_b", false}, {"dtype", "bf16"}};
  const Attributes turned = {{"transpose_a", false}, {"transpose_b", true}, {"dtype", "bf16"}};
  Operands inputs({a, b});
  for (int64_t i = 0; i < a.shape.size(); ++i) inputs.As<BFloat16>(0)[i] = ToBFloat16(one(i));
  for (int64_t i = 0; i < b.shape.size(); ++i) inputs.As<float>(1)[i] = one(7 * i + i / kColumns);
  std::vector<float> expected(kRows * kColumns);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t k = 0; k < kInner; ++k) {
      const float factor = ToFloat(inputs.As<BFloat16>(0)[i * kInner + k]);
      for (int64_t j = 0; j < kColumns; ++j) {
        expected[i * kColumns + j] += factor * inputs.As<float>(1)[k * kColumns + j];
      }
    }
  }
  ASSERT_LE(*std::ranges::max_element(expected), 256.0f);  // what bf16 holds exactly
  for (float& sum : expected) sum = std::max(sum, 0.0f);
  Operands outputs = OutputsOf("matmul_relu", plain, {a, b}, inputs);
  EXPECT_EQ(NumbersOf(outputs, 0, DType::kBF16), expected);

  const TensorType mask = MaskOf({kRows, kColumns});
  Operands masked({a, transposed, mask});
  std::ranges::copy(inputs.As<BFloat16>(0), masked.As<BFloat16>(0).begin());
  for (int64_t k = 0; k < kInner; ++k) {
    for (int64_t j = 0; j < kColumns; ++j) {
      masked.As<float>(1)[j * kInner + k] = inputs.As<float>(1)[k * kColumns + j];
    }
  }
  std::ranges::copy(outputs.As<int32_t>(1), masked.As<int32_t>(2).begin());
  Operands results = OutputsOf("masked_matmul", turned, {a, transposed, mask}, masked);
  EXPECT_EQ(NumbersOf(results, 0, DType::kBF16), expected);
}

TEST(ReluDropout, OfNanIsNan) {
  constexpr int64_t kWidth = 67;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<TensorType> types = {{dtype, {1, 1, kWidth}}, {DType::kI32, {1, 2}}};
    Operands inputs(types);
    for (int64_t i = 0; i < kWidth; ++i) SetNumber(inputs, 0, dtype, i, kNaN);
    Operands outputs =
        OutputsOf("relu_dropout", {{"rate", 0.25}, {"site", int64_t{7}}, {"per_element", true}},
                  types, inputs);
    int64_t nans = 0;
    for (const float y : NumbersOf(outputs, 0, dtype)) nans += std::isnan(y) ? 1 : 0;
    EXPECT_GT(nans, kWidth / 2);
  }
}

// Wherever it is: before the largest element or after it, in the same lane of a vector or not.
TEST(ReduceMax, PassesOverNan) {
  constexpr int64_t kWidth = 83;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<TensorType> types = {{dtype, {kWidth + 1, kWidth}}};
    Operands inputs(types);
    for (int64_t row = 0; row <= kWidth; ++row) {
      for (int64_t i = 0; i < kWidth; ++i) {
        const bool is_nan = row == kWidth || i == row;
        const float number = is_nan ? kNaN : i == 40 || i == 41 ? 5.0f : -1.0f;
        SetNumber(inputs, 0, dtype, row * kWidth + i, number);
      }
    }
    Operands outputs = OutputsOf("reduce_max", {}, types, inputs);
    const std::vector<float> largest = NumbersOf(outputs, 0, dtype);
    const auto index = outputs.As<int32_t>(1);
    for (int64_t row = 0; row < kWidth; ++row) {
      EXPECT_EQ(largest[row], 5.0f) << "NaN at " << row;
      EXPECT_EQ(index[row], row == 40 ? 41 : 40) << "NaN at " << row;
    }
    EXPECT_TRUE(std::isnan(largest[kWidth]));
    EXPECT_EQ(index[kWidth], 0);
  }
}

// A maximum passes over NaN; a model that gives one must not seem to have chosen a token.
TEST(LinearArgmax, IsNoTokenWhereALogitIsNotFinite) {
  constexpr int64_t kRows = 4, kWidth = 19, kVocabulary = 3001;
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
