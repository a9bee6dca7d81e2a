// SPDX-License-Identifier: Apache-2.0
// attention: compares the double-precision reference with finite differences and closed forms, and
// the CPU kernels with the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/bfloat16.h"
#include "kernels/bound_kernel.h"
#include "kernels/op.h"
#include "kernels/ops/attention.h"

namespace syntra {
namespace {

using namespace attention;

// One operand in double precision, or integers.
struct Operand {
  TensorType type;
  std::vector<double> numbers;
  std::vector<int32_t> integers;

  explicit Operand(const TensorType& t) : type(t) {
    if (IsFloat(t.dtype)) numbers.resize(t.shape.size());
    if (t.dtype == DType::kI32) integers.resize(t.shape.size());
  }
};
using Operands = std::vector<Operand>;

Operands Zeros(const std::vector<TensorType>& types) { return {types.begin(), types.end()}; }

std::vector<TensorType> TypesOf(const Operands& operands) {
  std::vector<TensorType> types;
  for (const Operand& operand : operands) types.push_back(operand.type);
  return types;
}

std::vector<ReferenceTensor> ViewsOf(Operands& operands) {
  std::vector<ReferenceTensor> views;
  for (Operand& o : operands) views.push_back({o.type, o.numbers, o.integers});
  return views;
}

void FillRandomly(std::mt19937_64& random, std::vector<double>& numbers) {
  std::normal_distribution<double> normal;
  for (double& x : numbers) x = normal(random);
}

Operands Draw(const OpCase& test_case, std::mt19937_64& random) {
  Operands inputs = Zeros(test_case.inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    FillRandomly(random, inputs[i].numbers);
    if (test_case.fill_numbers) test_case.fill_numbers(static_cast<int>(i), inputs[i].numbers);
    if (!inputs[i].integers.empty()) {
      test_case.fill_integers(static_cast<int>(i), inputs[i].integers);
    }
  }
  return inputs;
}

Operands RunReference(const char* name, const Attributes& attributes, Operands& inputs) {
  const Op& op = GetOp(name);
  OpCall call{attributes, TypesOf(inputs), {}, {}};
  call.outputs = op.infer(attributes, call.inputs);
  Operands outputs = Zeros(call.outputs);
  op.reference(call, ViewsOf(inputs), ViewsOf(outputs));
  return outputs;
}

Operands GradientInputs(const Operands& inputs, const Operands& outputs, const Operand& dy) {
  Operands all(inputs.begin(), inputs.begin() + kSharedInputs);
  all.insert(all.end(), outputs.begin(), outputs.end());
  all.push_back(dy);
  return all;
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The nearest values that the operand's own type holds.
void Represent(Operand& operand) {
  for (double& x : operand.numbers) {
    x = static_cast<float>(x);
    if (operand.type.dtype == DType::kBF16) x = ToFloat(ToBFloat16(static_cast<float>(x)));
  }
}

// Exactly as long as the operand, so that AddressSanitizer sees reads past its end.
using HostMemory = std::vector<std::byte>;

HostMemory ToHost(const Operand& operand) {
  HostMemory buffer(operand.type.bytes());
  for (size_t e = 0; e < operand.numbers.size(); ++e) {
    const auto x = static_cast<float>(operand.numbers[e]);
    if (operand.type.dtype == DType::kBF16) {
      reinterpret_cast<BFloat16*>(buffer.data())[e] = ToBFloat16(x);
    } else {
      reinterpret_cast<float*>(buffer.data())[e] = x;
    }
  }
  if (!operand.integers.empty()) {
    std::memcpy(buffer.data(), operand.integers.data(), operand.type.bytes());
  }
  return buffer;
}

void FromHost(const HostMemory& buffer, Operand& operand) {
  for (size_t e = 0; e < operand.numbers.size(); ++e) {
    operand.numbers[e] = operand.type.dtype == DType::kBF16
                             ? ToFloat(reinterpret_cast<const BFloat16*>(buffer.data())[e])
                             : reinterpret_cast<const float*>(buffer.data())[e];
  }
}

// Runs the CPU kernel into `outputs`, whose types say which are wanted.
void RunCpu(const char* name, const Attributes& attributes, const Operands& inputs,
            Operands& outputs, bool accumulate = false) {
  const OpCall call{attributes, TypesOf(inputs), TypesOf(outputs),
                    std::vector<bool>(outputs.size(), accumulate)};
  const std::optional<BoundKernel> kernel = BindCpuKernel(GetOp(name), call);
  ASSERT_TRUE(kernel && kernel->accumulates);
  std::vector<HostMemory> buffers;
  std::vector<void*> in, out;
  const auto pass = [&](const Operand& operand, std::vector<void*>& pointers) {
    buffers.push_back(ToHost(operand));
    pointers.push_back(operand.type.present() ? buffers.back().data() : nullptr);
  };
  for (const Operand& operand : inputs) pass(operand, in);
  for (const Operand& operand : outputs) pass(operand, out);
  Buffer workspace(kernel->workspace_bytes + 4096, "test workspace");
  // Nothing may be read from the workspace before it is written, nor written past its end.
  std::memset(workspace.data(), 0xFF, workspace.size());
  kernel->run({in, out, workspace.data()});
  const std::byte* end = workspace.data() + kernel->workspace_bytes;
  EXPECT_TRUE(std::all_of(end, end + 4096, [](std::byte x) { return x == std::byte{0xFF}; }));
  for (size_t o = 0; o < outputs.size(); ++o) FromHost(buffers[inputs.size() + o], outputs[o]);
}

// Norm of the difference over the norm of the truth; infinities must agree.
double RelativeError(const Operand& found, const Operand& truth) {
  double difference = 0.0, norm = 0.0;
  for (size_t e = 0; e < truth.numbers.size(); ++e) {
    if (std::isinf(truth.numbers[e]) && found.numbers[e] == truth.numbers[e]) continue;
    difference += std::pow(found.numbers[e] - truth.numbers[e], 2);
    norm += std::pow(truth.numbers[e], 2);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

double Tolerance(DType dtype) { return dtype == DType::kBF16 ? 1e-2 : 2e-6; }

// One case's operands as the kernels get them, and the truth about them.
struct Problem {
  Attributes attributes;
  DType dtype;
  Operands inputs, outputs, gradient_inputs, gradients;

  Problem(const OpCase& test_case, uint64_t seed, double query_scale = 1.0)
      : attributes(test_case.attributes), dtype(test_case.inputs[kValue].dtype) {
    std::mt19937_64 random(seed);
    inputs = Draw(test_case, random);
    for (int i : {kQuery, kU}) {
      for (double& x : inputs[i].numbers) x *= query_scale;
    }
    for (Operand& input : inputs) Represent(input);
    outputs = RunReference("attention", attributes, inputs);
    if (inputs[kQueryStart].type.present()) return;
    Operand dy = outputs[kY];
    FillRandomly(random, dy.numbers);
    Represent(dy);
    gradient_inputs = GradientInputs(inputs, outputs, dy);
    for (Operand& input : gradient_inputs) Represent(input);
    gradients = RunReference("attention_grad", attributes, gradient_inputs);
  }
};

void ExpectClose(const Operands& found, const Operands& truth, double tolerance) {
  for (size_t o = 0; o < truth.size(); ++o) {
    if (!found[o].type.present()) continue;
    EXPECT_LE(RelativeError(found[o], truth[o]), tolerance) << "output " << o;
  }
}

void ExpectSameBits(const Operands& found, const Operands& expected) {
  for (size_t o = 0; o < expected.size(); ++o) {
    EXPECT_EQ(found[o].numbers, expected[o].numbers) << "output " << o;
  }
}

// The outputs of both kernels.
struct Results {
  Operands outputs, gradients;

  explicit Results(const Problem& p) : outputs(p.outputs), gradients(p.gradients) {
    RunCpu("attention", p.attributes, p.inputs, outputs);
    if (!gradients.empty()) RunCpu("attention_grad", p.attributes, p.gradient_inputs, gradients);
  }
};

OpCase CaseOf(DType type, const char* kind) {
  const std::string_view name = kind;
  const auto has = [&](const char* part) { return name.find(part) != std::string_view::npos; };
  // Six examples are two groups of the shared class.
  const int64_t b = name == "table" ? 6 : 3, h = 2, t = 300, s = has("cross") ? 180 : 300, k = 32,
                f = 16;
  std::vector<TensorType> in(kInputCount, TensorType{DType::kNone, {}});
  in[kValue] = {type, {b, s, h * k}};
  if (has("dot")) {
    in[kQuery] = {type, {b, t, h * k}};
    in[kKey] = {type, {b, s, h * k}};
  }
  if (has("dense")) {
    in[kU] = {type, {b, t, h * f}};
    in[kPositions] = {DType::kF32, {f, 320}};
  }
  if (has("factorized")) {
    in[kA] = {type, {b, t, h * 20}};
    in[kB] = {type, {b, t, h * 16}};
  }
  if (has("table")) in[kTable] = {DType::kF32, {h, 310, 310}};
  if (has("bias")) in[kBias] = {DType::kF32, {h, t + s - 1}};
  if (has("packed")) {
    in[kQuerySegments] = {DType::kI32, {b, t}};
    in[kKeySegments] = {DType::kI32, {b, s}};
  }
  if (has("prefix")) in[kPrefixEnds] = {DType::kI32, {b, t}};
  // One whole example, one of two segments, one that ends in padding.
  const auto segment = [](int64_t example, int64_t row) {
    return example == 0 ? 1 : example == 1 ? (row < 100 ? 1 : 2) : (row < 130 ? 1 : 0);
  };
  // Longer than a tile; of both segments; shorter than a tile.
  const auto prefix_end = [](int64_t example, int64_t row) {
    if (example == 1 && row >= 100) return row < 170 ? 170 : 0;
    const int end = example == 0 ? 260 : example == 1 ? 64 : 20;
    return row < end ? end : 0;
  };
  const auto fill = [=](int input, std::span<int32_t> values) {
    const int64_t rows = input == kKeySegments ? s : t;
    for (int64_t e = 0; e < std::ssize(values); ++e) {
      const int64_t example = e / rows, row = e % rows;
      values[e] = input == kPrefixEnds ? prefix_end(example, row) : segment(example, row);
    }
  };
  return {name.data(), AttributesOf(h, {.causal = has("causal")}), in, fill};
}

constexpr const char* kLargeCases[] = {"dot_table_causal_packed",  "dot_causal_bias",
                                       "dot_cross_packed",         "table",
                                       "table_bias_causal",        "table_packed",
                                       "dense_dot_causal",         "factorized",
                                       "factorized_dot_packed",    "dense_packed",
                                       "dot_causal_packed_prefix", "table_bias_causal_prefix"};

class AttentionCase : public testing::TestWithParam<OpCase> {};

TEST_P(AttentionCase, ReferenceGradientMatchesFiniteDifferences) {
  const OpCase& test_case = GetParam();
  if (test_case.inputs[kQueryStart].present()) return;
  std::mt19937_64 random(7);
  Operands inputs = Draw(test_case, random);
  const Operands outputs = RunReference("attention", test_case.attributes, inputs);
  Operand dy = outputs[kY];
  FillRandomly(random, dy.numbers);
  Operands gradient_inputs = GradientInputs(inputs, outputs, dy);
  const Operands gradients = RunReference("attention_grad", test_case.attributes, gradient_inputs);
  const double step = 1e-5;
  for (int g = 0; g < kGradientOutputCount; ++g) {
    if (!inputs[g].type.present()) continue;
    ASSERT_EQ(gradients[g].type, inputs[g].type);
    for (int repeat = 0; repeat < 4; ++repeat) {
      const std::vector<double> at = inputs[g].numbers;
      std::vector<double> direction(at.size());
      FillRandomly(random, direction);
      double difference = 0.0;
      for (double sign : {1.0, -1.0}) {
        for (size_t e = 0; e < at.size(); ++e) {
          inputs[g].numbers[e] = at[e] + sign * step * direction[e];
        }
        const Operands moved = RunReference("attention", test_case.attributes, inputs);
        difference += sign * Dot(moved[kY].numbers, dy.numbers) / (2 * step);
      }
      inputs[g].numbers = at;
      const double expected = Dot(gradients[g].numbers, direction);
      EXPECT_NEAR(difference, expected, 1e-7 * (1.0 + std::abs(expected))) << "input " << g;
    }
  }
}

TEST_P(AttentionCase, CpuMatchesReference) {
  const Problem p(GetParam(), 11);
  const Results found(p);
  ExpectClose(found.outputs, p.outputs, Tolerance(p.dtype));
  ExpectClose(found.gradients, p.gradients, Tolerance(p.dtype));
}

TEST_P(AttentionCase, CpuAddsToWhatIsThere) {
  const Problem p(GetParam(), 12);
  const auto check = [&](const char* name, const Operands& inputs, const Operands& truth) {
    Operands plain = truth, added = truth;
    for (Operand& operand : added) std::fill(operand.numbers.begin(), operand.numbers.end(), 1.0);
    RunCpu(name, p.attributes, inputs, plain);
    RunCpu(name, p.attributes, inputs, added, true);
    for (size_t o = 0; o < truth.size(); ++o) {
      for (size_t e = 0; e < plain[o].numbers.size(); ++e) {
        const double expected = plain[o].numbers[e] + 1.0;
        if (std::isinf(expected)) continue;
        const double step = truth[o].type.dtype == DType::kBF16 ? 0x1p-7 : 0x1p-21;
        ASSERT_NEAR(added[o].numbers[e], expected, step * (2.0 + std::abs(expected)));
      }
    }
  };
  check("attention", p.inputs, p.outputs);
  if (!p.gradients.empty()) check("attention_grad", p.gradient_inputs, p.gradients);
}

TEST_P(AttentionCase, CpuComputesEachGradientAlone) {
  const Problem p(GetParam(), 13);
  for (size_t g = 0; g < p.gradients.size(); ++g) {
    Operands one = Zeros(std::vector<TensorType>(p.gradients.size(), {DType::kNone, {}}));
    one[g] = p.gradients[g];
    if (!one[g].type.present()) continue;
    RunCpu("attention_grad", p.attributes, p.gradient_inputs, one);
    ExpectClose(one, p.gradients, Tolerance(p.dtype));
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionCase, testing::ValuesIn(attention::Cases()),
                         [](const auto& info) { return info.param.name; });

class LargeAttention : public testing::TestWithParam<std::tuple<DType, const char*>> {};

TEST_P(LargeAttention, CpuMatchesReferenceWithAnyNumberOfThreads) {
  const auto [dtype, kind] = GetParam();
  // Scores of the size that training sees: their rounding is not what is tested here.
  const Problem p(CaseOf(dtype, kind), 17, 0.2);
  const int threads = ThreadCount();
  SetThreadCount(1);
  const Results one(p);
  ExpectClose(one.outputs, p.outputs, Tolerance(dtype));
  ExpectClose(one.gradients, p.gradients, Tolerance(dtype));
  for (int count : {2, 3}) {
    SetThreadCount(count);
    const Results many(p);
    ExpectSameBits(many.outputs, one.outputs);
    ExpectSameBits(many.gradients, one.gradients);
  }
  SetThreadCount(threads);
}

INSTANTIATE_TEST_SUITE_P(All, LargeAttention,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::ValuesIn(kLargeCases)),
                         [](const auto& info) {
                           return std::string(std::get<1>(info.param)) + "_" +
                                  std::string(NameOf(std::get<0>(info.param)));
                         });

OpCase SimpleCase(DType type, int64_t b, int64_t t, int64_t h, int64_t k, bool dot) {
  std::vector<TensorType> in(kInputCount, TensorType{DType::kNone, {}});
  in[kValue] = {type, {b, t, h * k}};
  if (dot) in[kQuery] = in[kKey] = in[kValue];
  return {"simple", AttributesOf(h, {.causal = false}), in, {}};
}

TEST(Attention, ZeroTableIsTheMeanOverAllowedKeys) {
  OpCase simple = SimpleCase(DType::kF32, 2, 40, 2, 16, false);
  simple.inputs[kTable] = {DType::kF32, {2, 48, 48}};
  simple.inputs[kQuerySegments] = {DType::kI32, {2, 40}};
  simple.inputs[kKeySegments] = {DType::kI32, {2, 40}};
  simple.fill_integers = [](int, std::span<int32_t> values) {
    for (size_t e = 0; e < values.size(); ++e) values[e] = e < 40 ? 1 : e < 70 ? 3 : 0;
  };
  Problem p(simple, 3);
  std::fill(p.inputs[kTable].numbers.begin(), p.inputs[kTable].numbers.end(), 0.0);
  Operands outputs = p.outputs;
  RunCpu("attention", p.attributes, p.inputs, outputs);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t c = 0; c < 32; ++c) {
      const int64_t keys = b == 0 ? 40 : 30;
      double mean = 0.0;
      for (int64_t j = 0; j < keys; ++j) {
        mean += p.inputs[kValue].numbers[(b * 40 + j) * 32 + c] / static_cast<double>(keys);
      }
      for (int64_t i = 0; i < 40; ++i) {
        EXPECT_NEAR(outputs[kY].numbers[(b * 40 + i) * 32 + c], i < keys ? mean : 0.0, 1e-6);
      }
    }
  }
}

// With one-hot queries, q_i . k_j is entry i of k_j: a table in the shape of keys.
TEST(Attention, TableEqualsDotProductOfOneHotQueries) {
  constexpr int64_t kSize = 32;
  Problem dot(SimpleCase(DType::kF32, 1, kSize, 1, kSize, true), 5);
  OpCase simple = SimpleCase(DType::kF32, 1, kSize, 1, kSize, false);
  simple.inputs[kTable] = {DType::kF32, {1, kSize, kSize}};
  Problem table(simple, 5);
  table.inputs[kValue].numbers = dot.inputs[kValue].numbers;
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      dot.inputs[kQuery].numbers[i * kSize + j] = i == j ? 1.0 : 0.0;
      table.inputs[kTable].numbers[i * kSize + j] = dot.inputs[kKey].numbers[j * kSize + i];
    }
  }
  Operands by_dot = dot.outputs, by_table = table.outputs;
  RunCpu("attention", dot.attributes, dot.inputs, by_dot);
  RunCpu("attention", table.attributes, table.inputs, by_table);
  EXPECT_LE(RelativeError(by_dot[kY], by_table[kY]), 1e-6);
}

TEST_P(LargeAttention, PaddedKeysNeverMatter) {
  const auto [dtype, kind] = GetParam();
  if (std::string_view(kind).find("packed") == std::string_view::npos) return;
  Problem p(CaseOf(dtype, kind), 23, 0.2);
  const Results before(p);
  const int64_t rows = p.inputs[kValue].type.shape[1], width = p.inputs[kValue].type.shape[2];
  for (Operands* operands : {&p.inputs, &p.gradient_inputs}) {
    for (int i : {kKey, kValue}) {
      std::vector<double>& numbers = (*operands)[i].numbers;
      if (numbers.empty()) continue;
      // The last example from its first padded row on.
      const auto padded = numbers.begin() + (2 * rows + 130) * width;
      std::for_each(padded, numbers.end(), [](double& x) { x += 1000.0; });
    }
  }
  const Results after(p);
  ExpectSameBits(after.outputs, before.outputs);
  ExpectSameBits(after.gradients, before.gradients);
}

// Computes what a composition of bf16 ops would: every intermediate tensor is rounded when stored.
struct NaiveBFloat16 {
  std::vector<double> y, d_query, d_key, d_value;

  static double Round(double x) { return ToFloat(ToBFloat16(static_cast<float>(x))); }

  // One head, no other terms.
  explicit NaiveBFloat16(const Problem& p) {
    const int64_t b_count = p.inputs[kValue].type.shape[0], t = p.inputs[kValue].type.shape[1];
    const int64_t k = p.inputs[kValue].type.shape[2];
    const auto& q = p.inputs[kQuery].numbers;
    const auto& key = p.inputs[kKey].numbers;
    const auto& v = p.inputs[kValue].numbers;
    const auto& dy = p.gradient_inputs[kGivenDY].numbers;
    for (auto* out : {&y, &d_query, &d_key, &d_value}) out->assign(v.size(), 0.0);
    const auto at = [&](int64_t b, int64_t i, int64_t d) { return (b * t + i) * k + d; };
    std::vector<double> s(t), d_probability(t);
    for (int64_t b = 0; b < b_count; ++b) {
      for (int64_t i = 0; i < t; ++i) {
        double sum = 0.0, mean = 0.0;
        for (int64_t j = 0; j < t; ++j) {
          s[j] = d_probability[j] = 0.0;
          for (int64_t d = 0; d < k; ++d) {
            s[j] += q[at(b, i, d)] * key[at(b, j, d)];
            d_probability[j] += dy[at(b, i, d)] * v[at(b, j, d)];
          }
          s[j] = std::exp(Round(s[j]));
          sum += s[j];
        }
        for (int64_t j = 0; j < t; ++j) {
          s[j] = Round(s[j] / sum);
          d_probability[j] = Round(d_probability[j]);
          mean += s[j] * d_probability[j];
        }
        for (int64_t j = 0; j < t; ++j) {
          const double ds = Round(s[j] * (d_probability[j] - mean));
          for (int64_t d = 0; d < k; ++d) {
            y[at(b, i, d)] += s[j] * v[at(b, j, d)];
            d_value[at(b, j, d)] += s[j] * dy[at(b, i, d)];
            d_query[at(b, i, d)] += ds * key[at(b, j, d)];
            d_key[at(b, j, d)] += ds * q[at(b, i, d)];
          }
        }
      }
    }
    for (auto* out : {&y, &d_query, &d_key, &d_value}) {
      for (double& x : *out) x = Round(x);
    }
  }
};

TEST(Attention, BFloat16IsAtMostTwiceAsFarFromTheTruthAsNaiveCode) {
  const Problem p(SimpleCase(DType::kBF16, 2, 160, 1, 64, true), 31, 0.125);
  const NaiveBFloat16 naive(p);
  const Results found(p);
  const auto check = [](const Operand& ours, const std::vector<double>& naive_numbers,
                        const Operand& truth, const char* name) {
    Operand other = truth;
    other.numbers = naive_numbers;
    EXPECT_LE(RelativeError(ours, truth), 2 * RelativeError(other, truth)) << name;
  };
  check(found.outputs[kY], naive.y, p.outputs[kY], "y");
  check(found.gradients[kValue], naive.d_value, p.gradients[kValue], "value");
  check(found.gradients[kQuery], naive.d_query, p.gradients[kQuery], "query");
  check(found.gradients[kKey], naive.d_key, p.gradients[kKey], "key");
}

// A step of decoding multiplies keys and values where they are, so a thread has no copy of them.
TEST(Attention, OneQueryCopiesNoKeys) {
  OpCase step = SimpleCase(DType::kF32, 1, 5000, 1, 64, true);
  step.inputs[kQuery].shape = {1, 1, 64};
  step.inputs[kQueryStart] = {DType::kI32, {1}};
  for (const char* name : {"attention", "attention_weights"}) {
    const Op& op = GetOp(name);
    OpCall call{step.attributes, step.inputs, op.infer(step.attributes, step.inputs), {}};
    call.accumulate.assign(call.outputs.size(), false);
    EXPECT_LT(BindCpuKernel(op, call)->workspace_bytes, ThreadCount() * step.inputs[kKey].bytes())
        << name;
  }
}

}  // namespace
}  // namespace syntra
