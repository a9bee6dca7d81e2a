// SPDX-License-Identifier: Apache-2.0
// Compares the double-precision references with results computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "kernels/attention_call.h"
#include "kernels/math/relative_bucket.h"
#include "tests/kernels/case_data.h"

namespace syntra {
namespace {

using Numbers = std::vector<double>;

CaseTensor Floats(Shape shape, Numbers numbers) {
  return {{DType::kF32, shape}, std::move(numbers), {}};
}
CaseTensor Integers(Shape shape, std::vector<int32_t> integers) {
  return {{DType::kI32, shape}, {}, std::move(integers)};
}
CaseTensor Absent() { return MakeTensor({DType::kNone, {}}); }

// The outputs of an op; `outputs`, where given, are updated.
std::vector<CaseTensor> Call(const std::string& name, Attributes attributes,
                             std::vector<CaseTensor> inputs, std::vector<CaseTensor> outputs = {}) {
  const Op& op = GetOp(name);
  OpCall call{std::move(attributes), {}, {}, {}};
  for (const CaseTensor& input : inputs) call.inputs.push_back(input.type);
  call.outputs = op.infer(call.attributes, call.inputs);
  if (outputs.empty()) {
    for (const TensorType& type : call.outputs) outputs.push_back(MakeTensor(type));
  }
  op.reference(call, Views(inputs), Views(outputs));
  return outputs;
}

void ExpectNumbers(const CaseTensor& got, const Numbers& want) {
  ASSERT_EQ(got.numbers.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.numbers[i], want[i], 1e-12) << i;
}

TEST(Reference, AddNormOfThreeAndFour) {
  const Attributes attributes = {
      {"epsilon", 0.0}, {"rate", 0.0}, {"site", 0}, {"per_element", false}};
  const auto outputs = Call(
      "add_norm", attributes,
      {Floats({1, 1, 2}, {1, 5}), Floats({1, 1, 2}, {2, -1}), Floats({2}, {2, 0.5}), Absent()});
  const double r = 1.0 / std::sqrt(12.5);
  ExpectNumbers(outputs[0], {3, 4});
  ExpectNumbers(outputs[1], {6 * r, 2 * r});
  ExpectNumbers(outputs[2], {r});
}

// Of matmul and batch_matmul.
Attributes ProductOf(bool transpose_a, bool transpose_b, Attributes::Integers rows_first = {}) {
  return {{"transpose_a", transpose_a},
          {"transpose_b", transpose_b},
          {"dtype", "f32"},
          {"rows_first", std::move(rows_first)}};
}

TEST(Reference, MatrixProducts) {
  const CaseTensor a = Floats({2, 2}, {1, 2, 3, 4}), b = Floats({2, 2}, {5, 6, 7, 8});
  ExpectNumbers(Call("matmul", ProductOf(false, false), {a, b})[0], {19, 22, 43, 50});
  ExpectNumbers(Call("matmul", ProductOf(false, true), {a, b})[0], {17, 23, 39, 53});
  ExpectNumbers(Call("matmul", ProductOf(true, false), {a, b})[0], {26, 30, 38, 44});
  // Two groups of 1 x 2 by 2 x 1; rows of both operands under transpose_a are one index.
  const CaseTensor left = Floats({2, 1, 2}, {1, 2, 3, 4}), right = Floats({2, 2, 1}, {5, 6, 7, 8});
  ExpectNumbers(Call("batch_matmul", ProductOf(false, false), {left, right})[0], {17, 53});
  ExpectNumbers(Call("matmul", ProductOf(true, false), {left, left})[0], {10, 14, 14, 20});
  ExpectNumbers(Call("batch_matmul", ProductOf(true, false), {left, left})[0],
                {1, 2, 2, 4, 9, 12, 12, 16});
}

TEST(Reference, BroadcastsAsNumPy) {
  const CaseTensor column = Floats({2, 1}, {10, 20}), row = Floats({3}, {1, 2, 3});
  ExpectNumbers(Call("add", {}, {column, row})[0], {11, 12, 13, 21, 22, 23});
  ExpectNumbers(Call("multiply", {}, {row, column})[0], {10, 20, 30, 20, 40, 60});
  EXPECT_THROW(Call("add", {}, {Floats({2}, {1, 2}), row}), Error);
}

TEST(Reference, SumsOverAxes) {
  const CaseTensor x = Floats({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const auto sum = [&](Attributes::Integers shape, const CaseTensor& factor) {
    return Call("sum_to", {{"shape", std::move(shape)}, {"dtype", "f32"}}, {x, factor})[0];
  };
  ExpectNumbers(sum({3}, Absent()), {5, 7, 9});
  ExpectNumbers(sum({2, 1, 1}, Absent()), {6, 15});
  ExpectNumbers(sum({1}, Floats({2, 1, 1}, {1, -1})), {-9});
}

TEST(Reference, ProductsOfBatches) {
  const CaseTensor w = Floats({2, 2}, {1, 2, 3, 4}), x = Floats({1, 2, 2}, {1, 0, 10, 1});
  ExpectNumbers(Call("shared_matmul", {{"transpose", false}}, {w, x})[0], {21, 2, 43, 4});
  ExpectNumbers(Call("shared_matmul", {{"transpose", true}}, {w, x})[0], {31, 3, 42, 4});
  const CaseTensor groups = Floats({2, 1, 2}, {1, 2, 3, 4});
  ExpectNumbers(Call("shared_matmul", {{"transpose", false}}, {groups, x})[0], {21, 4});
  const auto product = [&](bool transpose_a, bool transpose_b) {
    const CaseTensor a = Floats({1, 2, 2}, {1, 2, 3, 4}), b = Floats({1, 2, 2}, {5, 6, 7, 8});
    return Call("batch_matmul", ProductOf(transpose_a, transpose_b), {a, b})[0];
  };
  ExpectNumbers(product(false, false), {19, 22, 43, 50});
  ExpectNumbers(product(true, false), {26, 30, 38, 44});
  ExpectNumbers(product(false, true), {17, 23, 39, 53});
}

// Two rows of two heads of one column each: rows (1, 2) and (3, 4), so heads (1, 3) and (2, 4).
TEST(Reference, ProductsOfHeadsInRows) {
  const CaseTensor rows = Floats({2, 2, 1}, {1, 2, 3, 4}), heads = Floats({2, 1, 1}, {10, 100});
  ExpectNumbers(Call("batch_matmul", ProductOf(false, true, {0, 1}), {rows, rows})[0],
                {1, 3, 3, 9, 4, 8, 8, 16});
  ExpectNumbers(Call("batch_matmul", ProductOf(false, false, {0}), {rows, heads})[0],
                {10, 30, 200, 400});
  ExpectNumbers(Call("batch_matmul", ProductOf(false, false, {0, 2}), {rows, heads})[0],
                {10, 200, 30, 400});
  EXPECT_THROW(Call("batch_matmul", ProductOf(false, false, {0}), {heads, heads}), Error);
}

TEST(Reference, Rows) {
  ExpectNumbers(Call("softmax", {}, {Floats({1, 3}, {0, std::log(2), 0})})[0], {0.25, 0.5, 0.25});
  const auto normed = Call("layer_norm", {{"epsilon", 0.0}},
                           {Floats({2}, {3, 7}), Floats({2}, {1, 10}), Floats({2}, {0, 0.5})});
  ExpectNumbers(normed[0], {-1, 10.5});
  ExpectNumbers(normed[1], {5});
  ExpectNumbers(normed[2], {0.5});
}

TEST(Reference, CumulativeSums) {
  const auto sums = [](bool reverse, bool exclusive) {
    return Call("cumulative_sum", {{"axis", 0}, {"reverse", reverse}, {"exclusive", exclusive}},
                {Floats({3, 2}, {1, 10, 2, 20, 3, 30})})[0];
  };
  ExpectNumbers(sums(false, false), {1, 10, 3, 30, 6, 60});
  ExpectNumbers(sums(false, true), {0, 0, 1, 10, 3, 30});
  ExpectNumbers(sums(true, false), {6, 60, 5, 50, 3, 30});
  ExpectNumbers(sums(true, true), {5, 50, 3, 30, 0, 0});
}

TEST(Reference, MaximaAndOrders) {
  const auto largest = Call("reduce_max", {}, {Floats({2, 3}, {1, 7, 7, -3, -4, -5})});
  ExpectNumbers(largest[0], {7, -3});
  EXPECT_EQ(largest[1].integers, (std::vector<int32_t>{1, 0}));
  const auto sorted = Call("sort_by_key", {}, {Integers({4}, {5, 3, 4, 3})});
  EXPECT_EQ(sorted[0].integers, (std::vector<int32_t>{1, 3, 2, 0}));
  EXPECT_EQ(sorted[1].integers, (std::vector<int32_t>{3, 0, 2, 1}));
}

TEST(Reference, MovesElements) {
  const CaseTensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Attributes::Integers swapped = {1, 0}, flat = {6};
  ExpectNumbers(Call("transpose", {{"axes", swapped}}, {x})[0], {1, 4, 2, 5, 3, 6});
  const CaseTensor cube = Floats({1, 2, 3}, x.numbers);
  const Attributes::Integers cycle = {2, 0, 1};  // [3, 1, 2]
  ExpectNumbers(Call("transpose", {{"axes", cycle}}, {cube})[0], {1, 4, 2, 5, 3, 6});
  ExpectNumbers(Call("reshape", {{"shape", flat}}, {x})[0], x.numbers);
  ExpectNumbers(Call("slice", {{"axis", 1}, {"begin", 1}, {"length", 2}}, {x})[0], {2, 3, 5, 6});
  ExpectNumbers(Call("pad", {{"axis", 1}, {"before", 1}, {"after", 0}}, {x})[0],
                {0, 1, 2, 3, 0, 4, 5, 6});
  ExpectNumbers(Call("concatenate", {{"axis", 1}}, {Floats({2, 1}, {7, 8}), x})[0],
                {7, 1, 2, 3, 8, 4, 5, 6});
  EXPECT_THROW(Call("slice", {{"axis", 1}, {"begin", 2}, {"length", 2}}, {x}), Error);
  EXPECT_THROW(Call("transpose", {{"axes", Attributes::Integers{0, 0}}}, {x}), Error);
}

TEST(Reference, CrossEntropyInClosedForm) {
  // Logits 0 and ln 3: log_z = ln 4.
  const auto loss = [](double z_loss, double smoothing) {
    return Call(
        "linear_cross_entropy",
        {{"scale", 0.5}, {"z_loss", z_loss}, {"label_smoothing", smoothing}, {"first", int64_t{0}}},
        {Floats({1, 2, 1}, {2, 7}), Floats({2, 1}, {0, std::log(3)}), Integers({1, 2}, {1, 0}),
         Floats({1}, {0.25})});
  };
  const double z = std::log(4);
  ExpectNumbers(loss(0, 0)[0], {0.25 * std::log(4.0 / 3)});
  ExpectNumbers(loss(0.1, 0)[0], {0.25 * (std::log(4.0 / 3) + 0.1 * z * z)});
  ExpectNumbers(loss(0, 0.5)[0], {0.25 * (z - 0.75 * std::log(3))});
  ExpectNumbers(loss(0.1, 0.5)[1], {std::log(4.0 / 3), 0.1 * z * z, 1});
}

TEST(Reference, BucketsHaveT5Borders) {
  // The first distance of every bucket of 16 (each direction of 32) and of 32.
  const std::map<int, int> sixteen = {{8, 8},   {12, 9},  {16, 10}, {23, 11},
                                      {32, 12}, {46, 13}, {64, 14}, {91, 15}};
  const std::map<int, int> thirty_two = {{16, 16}, {19, 17}, {21, 18}, {24, 19}, {27, 20}, {31, 21},
                                         {35, 22}, {40, 23}, {46, 24}, {52, 25}, {59, 26}, {67, 27},
                                         {77, 28}, {87, 29}, {99, 30}, {113, 31}};
  const T5Buckets encoder(32, true, 128), decoder(32, false, 128);
  EXPECT_EQ(encoder.Reach(), 91);
  EXPECT_EQ(decoder.Reach(), 113);
  int forward = 0, backward = 0;
  for (int distance = 0; distance <= 600; ++distance) {
    if (distance < 8) forward = distance;
    if (distance < 16) backward = distance;
    if (const auto border = sixteen.find(distance); border != sixteen.end()) {
      forward = border->second;
    }
    if (const auto border = thirty_two.find(distance); border != thirty_two.end()) {
      backward = border->second;
    }
    EXPECT_EQ(encoder(-distance), forward) << distance;
    EXPECT_EQ(encoder(distance), distance == 0 ? 0 : 16 + forward) << distance;
    EXPECT_EQ(decoder(-distance), backward) << distance;
    EXPECT_EQ(decoder(distance), 0) << distance;
  }
}

TEST(Reference, RelativeBiasFromAnyRow) {
  Numbers table(32);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<double>(i);
  const Attributes attributes = {
      {"queries", 1}, {"keys", 4}, {"bidirectional", true}, {"max_distance", 128}};
  const CaseTensor buckets = Floats({1, 32}, table);
  ExpectNumbers(Call("relative_bias", attributes, {buckets, Absent()})[0], {0, 17, 18, 19});
  ExpectNumbers(Call("relative_bias", attributes, {buckets, Integers({1}, {2})})[0], {2, 1, 0, 17});
}

TEST(Reference, GatedGelu) {
  const auto y = Call("gated_gelu", {}, {Floats({3}, {0, 1, -1}), Floats({3}, {5, 2, 1})})[0];
  // sqrt(2/pi) * 1.044715 = 0.83355..., gelu(1) = (1 + tanh) / 2, gelu(-1) = gelu(1) - 1.
  const double gelu = 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * 1.044715));
  EXPECT_NEAR(gelu, 0.8411919906, 1e-9);
  ExpectNumbers(y, {0, 2 * gelu, gelu - 1});
}

TEST(Reference, DropoutDependsOnTheKeyAlone) {
  const Attributes attributes = {{"rate", 0.5}, {"site", 4}, {"per_element", false}, {"group", 2}};
  constexpr int64_t kRows = 3, kWidth = 64;
  const Numbers ones(2 * kRows * kWidth, 1.0);
  const auto mask = [&](std::vector<int32_t> keys) {
    return Call("dropout", attributes,
                {Floats({2, kRows, kWidth}, ones), Integers({2, 2}, keys)})[0]
        .numbers;
  };
  const Numbers first = mask({1, 2, 3, 4}), swapped = mask({3, 4, 1, 2});
  const size_t half = first.size() / 2;
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + half, swapped.begin() + half));
  EXPECT_FALSE(std::equal(first.begin(), first.begin() + half, first.begin() + half));
  int kept = 0;
  for (size_t i = 0; i < half; ++i) {
    EXPECT_TRUE(first[i] == 0.0 || first[i] == 2.0);
    EXPECT_EQ(first[i], first[i % kWidth / 2 * 2]) << "pairs share a draw, and so do rows";
    kept += first[i] > 0;
  }
  EXPECT_GT(kept, kRows * 10);
  EXPECT_LT(kept, kRows * 54);
}

// Mean 1/2 and variance 1/12; -log(-log(u)) has Euler's constant as its mean.
TEST(Reference, UniformNumbersFillTheOpenInterval) {
  constexpr int64_t kCount = 100000;
  const Attributes attributes = {{"shape", Attributes::Integers{2, kCount}}, {"site", int64_t{3}}};
  const Numbers y = Call("uniform", attributes, {Integers({2, 2}, {1, 2, 3, 4})})[0].numbers;
  ASSERT_EQ(y.size(), 2 * kCount);
  double sum = 0, squares = 0, gumbel = 0;
  for (const double u : y) {
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u - 0.5;
    squares += (u - 0.5) * (u - 0.5);
    gumbel -= std::log(-std::log(u));
  }
  const auto count = static_cast<double>(y.size());
  EXPECT_NEAR(sum / count, 0, 0.003);  // its deviation is 0.00065
  EXPECT_NEAR(squares / count, 1.0 / 12, 0.001);
  EXPECT_NEAR(gumbel / count, 0.5772, 0.015);  // 0.0029
  EXPECT_NE(y[0], y[kCount]);
}

TEST(Reference, EmbeddingGradientSumsRepeats) {
  const auto dtable = Call("embedding_grad", {{"vocabulary", 3}},
                           {Integers({1, 3}, {2, 0, 2}), Floats({1, 3, 1}, {1, 10, 100})});
  ExpectNumbers(dtable[0], {10, 0, 101});
}

TEST(Reference, ArgmaxTakesTheFirstOfEquals) {
  const auto best = Call("linear_argmax", {{"scale", 1.0}},
                         {Floats({1, 1, 1}, {1}), Floats({4, 1}, {-1, 3, 3, 2})});
  EXPECT_EQ(best[0].integers[0], 1);
}

TEST(Reference, ArgmaxIsNoTokenWhereALogitIsNotFinite) {
  for (const double bad : {NAN, INFINITY}) {
    const auto best = Call("linear_argmax", {{"scale", 1.0}},
                           {Floats({1, 1, 1}, {1}), Floats({4, 1}, {-1, 3, bad, 2})});
    EXPECT_EQ(best[0].integers[0], -1) << bad;
  }
}

TEST(Reference, FirstStepOfAdamWHasTheSizeOfTheRate) {
  const auto step = [](bool rms_scaled, double decay) {
    const Attributes attributes = {
        {"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 0.0}, {"rms_scaled", rms_scaled}};
    // At t = 1: bias1 = 0.1, bias2 = 0.01.
    return Call("adamw", attributes,
                {Floats({2}, {4, -6}), Floats({5}, {0.1, 0.5, 0.1, 0.01, decay})},
                {Floats({2}, {2, -2}), Floats({2}, {0, 0}), Floats({2}, {0, 0})});
  };
  const auto plain = step(false, 0);
  ExpectNumbers(plain[0], {1.9, -1.9});
  ExpectNumbers(plain[1], {0.2, -0.3});
  ExpectNumbers(plain[2], {0.04, 0.09});
  ExpectNumbers(step(false, 0.5)[0], {2 * 0.95 - 0.1, -2 * 0.95 + 0.1});
  ExpectNumbers(step(true, 0)[0], {2 - 0.2, -2 + 0.2});  // RMS(p) = 2
  ExpectNumbers(step(true, 0.5)[0], {1.8 * 0.95, -1.8 * 0.95});
}

TEST(Reference, AdafactorOfARankOneGradientTakesSigns) {
  // Squares of rank one factor exactly: x = sign(g), whatever the axes are called.
  const Numbers gradient = {1, -2, 3, -2, 4, -6};
  const auto step = [&](int64_t row_axis, int64_t column_axis, double clip_threshold) {
    const Shape row = row_axis == 0 ? Shape{3} : Shape{2},
                column = row_axis == 0 ? Shape{2} : Shape{3};
    return Call(
        "adafactor",
        {{"row_axis", row_axis}, {"column_axis", column_axis}, {"clip_threshold", clip_threshold}},
        {Floats({2, 3}, gradient), Floats({3}, {0.5, 1, 0})},
        {Floats({2, 3}, Numbers(6, 2.0)), Floats(row, Numbers(row.size(), 9.0)),
         Floats(column, Numbers(column.size(), 9.0))});
  };
  const auto factored = step(0, 1, 1.0);
  ExpectNumbers(factored[0], {1, 3, 1, 3, 1, 3});  // steps of rate * RMS(p) = 1
  ExpectNumbers(factored[1], {2.5, 10, 22.5});
  ExpectNumbers(factored[2], {14.0 / 3, 56.0 / 3});
  ExpectNumbers(step(1, 0, 1.0)[0], {1, 3, 1, 3, 1, 3});
  ExpectNumbers(step(0, 1, 0.5)[0], {1.5, 2.5, 1.5, 2.5, 1.5, 2.5});
}

TEST(Reference, AdafactorUnfactoredAverages) {
  const auto outputs =
      Call("adafactor", {{"row_axis", 0}, {"column_axis", -1}, {"clip_threshold", 100.0}},
           {Floats({1}, {8}), Floats({3}, {1, 0.5, 0.75})}, {Floats({1}, {0}), Floats({1}, {16})});
  ExpectNumbers(outputs[1], {0.75 * 16 + 0.25 * 16});
  ExpectNumbers(outputs[0], {-1e-3});  // RMS(p) counts as 1e-3 at least; x = 4 / sqrt(16)
}

TEST(Reference, RefusesOperandsThatDoNotFit) {
  EXPECT_THROW(Call("multiply", {}, {Floats({2}, {1, 2}), Floats({3}, {1, 2, 3})}), Error);
  EXPECT_THROW(Call("affine", {}, {}), Error);
  EXPECT_THROW(Call("softmax", {}, {Integers({1}, {1})}), Error);
  EXPECT_THROW(Call("joint_matmul_grad", {},
                    {Integers({1, 1}, {1}), Floats({1, 1}, {1}), Floats({1, 1}, {1})}),
               Error);
  EXPECT_THROW(Call("activation", {{"kind", "gelu"}}, {Floats({1}, {1})}), Error);
  EXPECT_THROW(Call("dropout", {{"rate", 0.5}, {"site", 0}, {"per_element", true}, {"group", 1}},
                    {Floats({1, 1, 1}, {1}), Absent()}),
               Error);
  EXPECT_THROW(
      Call("joint_matmul", {{"transpose_a", false}, {"transpose_b", true}, {"dtype", "f32"}},
           {Floats({1, 1}, {1}), Floats({1, 1}, {1})}),
      Error);
  EXPECT_THROW(Call("joint_matmul_grad", {}, std::vector(3 + 2 * kMostJoined, Floats({1, 1}, {1}))),
               Error);
  const auto bias = [](int64_t queries, int64_t max_distance) {
    return Call("relative_bias",
                {{"queries", queries},
                 {"keys", 4},
                 {"bidirectional", true},
                 {"max_distance", max_distance}},
                {Floats({1, 4}, {1, 2, 3, 4}), Absent()});
  };
  EXPECT_NO_THROW(bias(1, 2));
  EXPECT_THROW(bias(-1, 2), Error);
  EXPECT_THROW(bias(1, 1), Error);
}

TEST(Reference, AttentionRefusesWrongAttributes) {
  using namespace attention;
  const auto call = [](int64_t heads, const Pattern& pattern, int64_t block = 0) {
    std::vector<CaseTensor> inputs(kInputCount, Absent());
    inputs[kValue] = Floats({1, 2, 2}, {1, 2, 3, 4});
    return Call("attention", AttributesOf(heads, pattern, block), inputs);
  };
  ExpectNumbers(call(1, {.window = 2})[kY], {2, 3, 2, 3});
  for (const int64_t heads : {-1, 0, 3}) EXPECT_THROW(call(heads, {}), Error) << heads;
  EXPECT_THROW(call(1, {.window = -1}), Error);
  EXPECT_THROW(call(1, {.window = 2, .dilation = 0}), Error);
  EXPECT_THROW(call(1, {.window = 2, .globals = -1}), Error);
  EXPECT_THROW(call(1, {}, -1), Error);
  EXPECT_THROW(call(1, {}, 2), Error);
}

}  // namespace
}  // namespace syntra
