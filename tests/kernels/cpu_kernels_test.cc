// SPDX-License-Identifier: Apache-2.0
// Compares CPU kernels with the double-precision references on cases that are large enough to be
// split among threads and blocks: accuracy, equal results with any number of threads, accumulation,
// absent outputs, no writes out of bounds. Runs on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "core/buffer.h"
#include "core/instruction_sets.h"
#include "core/thread.h"
#include "kernels/bfloat16.h"
#include "kernels/bound_kernel.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/peak.h"
#include "kernels/op.h"
#include "kernels/ops/shapes.h"
#include "kernels/packed_weights.h"

namespace syntra {
namespace {

constexpr size_t kGuard = 256;
constexpr auto kGuardByte = std::byte{0xA5};

// A host tensor between guards.
class Tensor {
 public:
  explicit Tensor(TensorType type) : type_(type) {
    if (!type.present()) return;
    memory_ = Buffer(type.bytes() + 2 * kGuard + Buffer::kAlignment, "test tensor");
    std::fill_n(memory_.data(), memory_.size(), kGuardByte);
  }

  void* data() const { return type_.present() ? memory_.data() + kGuard : nullptr; }
  const TensorType& type() const { return type_; }

  double Get(int64_t i) const {
    return type_.dtype == DType::kF32 ? static_cast<const float*>(data())[i]
                                      : ToFloat(static_cast<const BFloat16*>(data())[i]);
  }
  void Set(int64_t i, double value) {
    if (type_.dtype == DType::kF32) {
      static_cast<float*>(data())[i] = static_cast<float>(value);
    } else {
      static_cast<BFloat16*>(data())[i] = ToBFloat16(static_cast<float>(value));
    }
  }
  std::span<int32_t> integers() {
    return {static_cast<int32_t*>(data()), static_cast<size_t>(type_.shape.size())};
  }

  bool GuardsIntact() const {
    if (!type_.present()) return true;
    const auto intact = [](const std::byte* from, const std::byte* to) {
      return std::all_of(from, to, [](std::byte b) { return b == kGuardByte; });
    };
    const std::byte* begin = memory_.data();
    return intact(begin, begin + kGuard) &&
           intact(begin + kGuard + type_.bytes(), begin + memory_.size());
  }

  void CopyFrom(const Tensor& other) {
    if (type_.present()) std::memcpy(data(), other.data(), type_.bytes());
  }
  bool SameBits(const Tensor& other) const {
    return !type_.present() || std::memcmp(data(), other.data(), type_.bytes()) == 0;
  }

 private:
  TensorType type_;
  Buffer memory_;
};

struct CallData {
  const Op& op;
  OpCall call;
  std::vector<Tensor> inputs, outputs;

  CallData(const Op& op, OpCall call) : op(op), call(std::move(call)) {
    for (const TensorType& type : this->call.inputs) inputs.emplace_back(type);
    for (const TensorType& type : this->call.outputs) outputs.emplace_back(type);
  }
};

bool IsOptimizer(const std::string& op) { return op == "adamw" || op == "adafactor"; }

void FillInputs(CallData& data, const FillIntegers& fill_integers) {
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    Tensor& tensor = data.inputs[i];
    if (!tensor.type().present()) continue;
    if (!IsFloat(tensor.type().dtype)) {
      if (fill_integers) {
        fill_integers(static_cast<int>(i), tensor.integers());
      } else {
        for (int32_t& value : tensor.integers()) value = static_cast<int32_t>(random());
      }
      continue;
    }
    const bool hyper = IsOptimizer(data.op.name) && i == 1;
    for (int64_t k = 0; k < tensor.type().shape.size(); ++k) {
      // Learning rates and moment decays lie between 0 and 1.
      tensor.Set(k, hyper ? 0.1 + 0.13 * static_cast<double>(k) : normal(random));
    }
  }
  for (Tensor& tensor : data.outputs) {
    if (!tensor.type().present() || !IsFloat(tensor.type().dtype)) continue;
    for (int64_t k = 0; k < tensor.type().shape.size(); ++k) {
      tensor.Set(k, std::abs(normal(random)) + 0.01);
    }
  }
}

// The call on copies of the tensors: outputs as they were, then as the kernel leaves them.
std::vector<Tensor> RunKernel(CallData& data, const OpCall& call, int threads) {
  const int saved = ThreadCount();
  SetThreadCount(threads);
  const std::optional<BoundKernel> kernel = BindCpuKernel(data.op, call);
  std::vector<Tensor> outputs;
  std::vector<void*> input_pointers, output_pointers;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    outputs.emplace_back(call.outputs[i]);
    outputs.back().CopyFrom(data.outputs[i]);
    output_pointers.push_back(outputs.back().data());
  }
  for (const Tensor& input : data.inputs) input_pointers.push_back(input.data());
  Tensor workspace({DType::kF32, {static_cast<int64_t>(kernel->workspace_bytes / 4 + 1)}});
  kernel->run({input_pointers, output_pointers, static_cast<std::byte*>(workspace.data())});
  SetThreadCount(saved);
  for (const Tensor& tensor : data.inputs) EXPECT_TRUE(tensor.GuardsIntact());
  for (const Tensor& tensor : outputs) EXPECT_TRUE(tensor.GuardsIntact());
  return outputs;
}

struct Numbers {
  std::vector<std::vector<double>> floats;
  std::vector<std::vector<int32_t>> integers;
};

Numbers RunReference(CallData& data) {
  std::vector<std::vector<double>> input_numbers(data.inputs.size());
  Numbers result{std::vector<std::vector<double>>(data.outputs.size()),
                 std::vector<std::vector<int32_t>>(data.outputs.size())};
  std::vector<ReferenceTensor> inputs, outputs;
  const auto load = [](const Tensor& tensor, std::vector<double>& numbers) {
    numbers.resize(tensor.type().shape.size());
    for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = tensor.Get(static_cast<int64_t>(k));
  };
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    Tensor& tensor = data.inputs[i];
    const bool numbers = tensor.type().present() && IsFloat(tensor.type().dtype);
    if (numbers) load(tensor, input_numbers[i]);
    inputs.push_back(
        {tensor.type(), input_numbers[i],
         numbers || !tensor.type().present() ? std::span<int32_t>{} : tensor.integers()});
  }
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const TensorType& type = data.outputs[i].type();
    if (type.present() && IsFloat(type.dtype)) {
      load(data.outputs[i], result.floats[i]);
      if (!data.op.updates) std::ranges::fill(result.floats[i], 0.0);
    } else if (type.present()) {
      result.integers[i].resize(type.shape.size());
    }
    outputs.push_back({type, result.floats[i], result.integers[i]});
  }
  data.op.reference(data.call, inputs, outputs);
  return result;
}

// Products round their f32 operands to bf16 in bf16 calls; everything else only stores in bf16.
bool ComputesInBFloat16(const CallData& data) {
  static constexpr std::string_view kProducts[] = {"matmul",
                                                   "batch_matmul",
                                                   "shared_matmul",
                                                   "linear_cross_entropy",
                                                   "linear_cross_entropy_grad",
                                                   "linear_argmax",
                                                   "head_matmul",
                                                   "head_matmul_grad"};
  const auto bf16 = [](const TensorType& type) { return type.dtype == DType::kBF16; };
  return std::ranges::find(kProducts, data.op.name) != std::end(kProducts) &&
         (std::ranges::any_of(data.call.inputs, bf16) ||
          std::ranges::any_of(data.call.outputs, bf16));
}

// |actual - expected| / |expected|, in the 2-norm over the whole tensor.
double NormError(const Tensor& actual, const std::vector<double>& expected,
                 const Tensor* added_to) {
  double error = 0.0, norm = 0.0;
  for (size_t k = 0; k < expected.size(); ++k) {
    const auto i = static_cast<int64_t>(k);
    const double wanted = expected[k] + (added_to != nullptr ? added_to->Get(i) : 0.0);
    error += std::pow(actual.Get(i) - wanted, 2);
    norm += wanted * wanted;
  }
  return std::sqrt(error / std::max(norm, 1e-300));
}

void ExpectOutputs(const CallData& data, const std::vector<Tensor>& actual, const Numbers& expected,
                   bool accumulated) {
  for (size_t i = 0; i < actual.size(); ++i) {
    const TensorType& type = actual[i].type();
    if (!type.present()) continue;
    if (!IsFloat(type.dtype)) {
      const auto* integers = static_cast<const int32_t*>(actual[i].data());
      EXPECT_TRUE(std::ranges::equal(expected.integers[i],
                                     std::span(integers, expected.integers[i].size())));
      continue;
    }
    const double tolerance = ComputesInBFloat16(data)     ? 1e-2
                             : type.dtype == DType::kBF16 ? 4e-3
                                                          : 2e-6;
    EXPECT_LE(NormError(actual[i], expected.floats[i], accumulated ? &data.outputs[i] : nullptr),
              tolerance)
        << "output " << i;
  }
}

void CheckCase(const Op& op, const OpCase& sample) {
  SCOPED_TRACE(op.name + "/" + sample.name);
  OpCall call{sample.attributes, sample.inputs, op.infer(sample.attributes, sample.inputs), {}};
  call.accumulate.assign(call.outputs.size(), false);
  const std::optional<BoundKernel> kernel = BindCpuKernel(op, call);
  if (!kernel) return;
  CallData data(op, call);
  FillInputs(data, sample.fill_integers);
  const Numbers expected = RunReference(data);
  const std::vector<Tensor> alone = RunKernel(data, call, 1);
  ExpectOutputs(data, alone, expected, false);
  for (int threads : {2, 3}) {
    const std::vector<Tensor> shared = RunKernel(data, call, threads);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(alone[i].SameBits(shared[i])) << "output " << i << ", " << threads << " threads";
    }
  }
  if (kernel->accumulates) {
    OpCall adding = call;
    adding.accumulate.assign(call.outputs.size(), true);
    ExpectOutputs(data, RunKernel(data, adding, 2), expected, true);
  }
  for (size_t absent = 0; absent < call.outputs.size() && call.outputs.size() > 1; ++absent) {
    if (op.updates || !call.outputs[absent].present()) continue;
    OpCall fewer = call;
    fewer.outputs[absent].dtype = DType::kNone;
    if (!BindCpuKernel(op, fewer)) continue;
    const std::vector<Tensor> rest = RunKernel(data, fewer, 2);
    for (size_t i = 0; i < rest.size(); ++i) {
      EXPECT_TRUE(i == absent || rest[i].SameBits(alone[i])) << i << " without " << absent;
    }
  }
}

// Of an op with one input and one output, both a row of floats.
std::vector<float> OutputOf(const char* name, const Attributes& attributes, std::vector<float> x) {
  const Op& op = GetOp(name);
  const std::vector<TensorType> types{{DType::kF32, {1, std::ssize(x)}}};
  const OpCall call{attributes, types, op.infer(attributes, types), {false}};
  const BoundKernel kernel = *BindCpuKernel(op, call);
  Buffer workspace(kernel.workspace_bytes + 1, "a test's workspace");
  std::vector<float> y(x.size());
  void *inputs[] = {x.data()}, *outputs[] = {y.data()};
  kernel.run({inputs, outputs, workspace.data()});
  return y;
}

TEST(CpuKernels, LargeActivations) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (int64_t width : {67, 512, 1030}) {
      const TensorType x{dtype, {3, 41, width}}, keys = I32({3, 2}), scale = F32({width});
      for (bool per_element : {false, true}) {
        const Attributes noise{{"epsilon", 1e-6},
                               {"rate", 0.1},
                               {"site", 5},
                               {"per_element", per_element},
                               {"group", 1}};
        CheckCase(GetOp("add_norm"), {"large", noise, {x, x, scale, keys}, {}});
        CheckCase(GetOp("add_norm_grad"),
                  {"large", noise, {x, scale, F32({3, 41}), x, x, keys}, {}});
        CheckCase(GetOp("dropout"), {"large", noise, {x, keys}, {}});
        CheckCase(GetOp("relu_dropout"), {"large", noise, {x, keys}, {}});
        CheckCase(GetOp("relu_dropout_grad"), {"large", noise, {x, x}, {}});
        CheckCase(GetOp("gated_gelu_dropout"), {"large", noise, {x, x, keys}, {}});
        CheckCase(GetOp("gated_gelu_dropout_grad"), {"large", noise, {x, x, x, keys}, {}});
      }
      CheckCase(GetOp("activation"), {"large", {{"kind", "relu"}}, {x}, {}});
      CheckCase(GetOp("gated_gelu"), {"large", {}, {x, x}, {}});
      CheckCase(GetOp("gated_gelu_grad"), {"large", {}, {x, x, x}, {}});
      CheckCase(GetOp("add"), {"large", {}, {x, scale}, {}});
      CheckCase(GetOp("embedding_grad"),
                {"large", {{"vocabulary", 50}}, {I32({3, 41}), x}, FillBetween(0, 49)});
    }
  }
}

TEST(CpuKernels, LargeTables) {
  CheckCase(GetOp("relative_bias_grad"),
            {"large",
             {{"buckets", 32}, {"queries", 130}, {"bidirectional", true}, {"max_distance", 128}},
             {F32({3, 279})},
             {}});
  const Attributes::Integers heads = {3, 1, 600};
  CheckCase(GetOp("sum_to"),
            {"large", {{"shape", heads}, {"dtype", "f32"}}, {F32({3, 70, 600}), None()}, {}});
}

TEST(CpuKernels, LargeParameters) {
  for (bool rms_scaled : {false, true}) {
    CheckCase(GetOp("adamw"),
              {"large",
               {{"beta1", 0.9}, {"beta2", 0.98}, {"epsilon", 1e-6}, {"rms_scaled", rms_scaled}},
               {F32({301, 200}), F32({5})},
               {}});
  }
  for (const auto& [row, column] : {std::pair<int64_t, int64_t>{1, 2}, {2, 1}, {0, -1}}) {
    CheckCase(GetOp("adafactor"),
              {"large",
               {{"row_axis", row}, {"column_axis", column}, {"clip_threshold", 0.3}},
               {F32({3, 150, 140}), F32({3})},
               {}});
  }
}

TEST(CpuKernels, LargeProducts) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const char* text = dtype == DType::kF32 ? "f32" : "bf16";
    const auto with = [](bool a, bool b, const char* type) {
      return Attributes{{"transpose_a", a}, {"transpose_b", b}, {"dtype", type}};
    };
    CheckCase(GetOp("matmul"),
              {"plain", with(false, false, text), {{dtype, {2, 200, 130}}, F32({130, 301})}, {}});
    CheckCase(GetOp("matmul"),
              {"right", with(false, true, text), {{dtype, {8, 140, 130}}, F32({301, 130})}, {}});
    CheckCase(
        GetOp("matmul"),
        {"left", with(true, false, "f32"), {{dtype, {5, 600, 67}}, {dtype, {5, 600, 90}}}, {}});
    CheckCase(GetOp("matmul"), {"left_slabs",
                                with(true, false, "f32"),
                                {{dtype, {9, 600, 258}}, {dtype, {9, 600, 21}}},
                                {}});
    CheckCase(GetOp("matmul"), {"left_packed",
                                with(true, false, "f32"),
                                {{dtype, {4, 600, 300}}, {dtype, {4, 600, 90}}},
                                {}});
    for (const Shape& weight : {Shape{19, 67}, Shape{3, 19, 67}}) {
      const TensorType x{dtype, {2, 150, 57}}, y{dtype, {2, 150, 201}};
      const Attributes heads{{"heads", int64_t{3}}};
      CheckCase(GetOp("head_matmul"), {"large", heads, {x, F32(weight)}, {}});
      CheckCase(GetOp("head_matmul_grad"), {"large", heads, {x, F32(weight), y}, {}});
    }
  }
}

// More tokens than a chunk, a vocabulary of several blocks, both with remainders; some padding.
TEST(CpuKernels, LargeVocabularies) {
  const FillIntegers targets = FillBetween(0, 3000);
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const TensorType hidden{dtype, {5, 103, 19}}, embedding = F32({3001, 19});
    const Attributes loss{
        {"scale", 0.3}, {"z_loss", 1e-3}, {"label_smoothing", 0.1}, {"first", int64_t{0}}};
    std::vector<TensorType> inputs = {hidden, embedding, I32({5, 103}), F32({1})};
    CheckCase(GetOp("linear_cross_entropy"), {"large", loss, inputs, targets});
    inputs.push_back(F32({1}));
    CheckCase(GetOp("linear_cross_entropy_grad"), {"large", loss, inputs, targets});
  }
  CheckCase(GetOp("linear_argmax"),
            {"large", {{"scale", 0.3}}, {F32({7, 1, 67}), F32({3001, 67})}, {}});
}

// What is packed for one product must not be taken for another that has only its first matrix.
TEST(CpuKernels, ProductsThatShareAMatrixHaveTheirOwnWeights) {
  constexpr int64_t kRows = 3, kWidth = 64;
  const TensorType b = F32({kWidth, kWidth});
  TensorType c = F32({kRows, kWidth});
  c.pitch = 2 * kWidth;
  PackedWeights packed;
  const BoundKernel kernel = *BindCpuKernel(
      GetOp("joint_matmul"), {{{"transpose_a", false}, {"transpose_b", false}, {"dtype", "f32"}},
                              {F32({kRows, kWidth}), b, b},
                              {c, c},
                              {false, false},
                              &packed});
  const Buffer workspace(kernel.workspace_bytes + 1, "a test's workspace");
  std::vector<float> x(kRows * kWidth, 1), ones(kWidth * kWidth, 1), twos(kWidth * kWidth, 2),
      threes(kWidth * kWidth, 3), y(kRows * c.pitch);
  const auto run = [&](std::vector<float>& second) {
    void *inputs[] = {x.data(), ones.data(), second.data()},
         *outputs[] = {y.data(), y.data() + kWidth};
    kernel.run({inputs, outputs, workspace.data()});
    return std::pair(y.front(), y.back());
  };
  EXPECT_EQ(run(twos), std::pair(64.0f, 128.0f));
  EXPECT_EQ(run(threes), std::pair(64.0f, 192.0f));
  const size_t bytes = packed.bytes();
  EXPECT_EQ(run(twos), std::pair(64.0f, 128.0f));
  EXPECT_EQ(packed.bytes(), bytes);
}

// Whatever their payload; logarithms of negative numbers are NaN, too.
TEST(CpuKernels, NaNStaysNaN) {
  for (const uint32_t bits : {0x7fc00000u, 0xffffffffu, 0x7fc00001u}) {
    const float nan = std::bit_cast<float>(bits);
    for (const char* kind : {"sigmoid", "exp", "log", "softplus", "tanh"}) {
      const auto y = OutputOf("activation", {{"kind", std::string(kind)}}, {1, nan});
      EXPECT_TRUE(std::isnan(y[1])) << kind << " of " << std::hex << bits << " is " << y[1];
      EXPECT_FALSE(std::isnan(y[0])) << kind;
    }
    for (const float y : OutputOf("softmax", {}, {1, nan, 2})) EXPECT_TRUE(std::isnan(y)) << y;
  }
  for (const float y : OutputOf("activation", {{"kind", std::string("log")}}, {-1, -100})) {
    EXPECT_TRUE(std::isnan(y)) << y;
  }
}

TEST(CpuKernels, MasksOfEveryRate) {
  for (double rate : {0.001, 0.5, 0.9, 0.999}) {
    CheckCase(GetOp("dropout"),
              {"rate",
               {{"rate", rate}, {"site", 77}, {"per_element", true}, {"group", 1}},
               {F32({2, 9, 67}), I32({2, 2})},
               {}});
  }
  CheckCase(GetOp("add_norm"),
            {"first",
             {{"epsilon", 1e-6}, {"rate", 0.5}, {"site", 1}, {"per_element", true}},
             {None(), F32({2, 9, 67}), F32({67}), I32({2, 2})},
             {}});
}

// The cases of the ops themselves.
TEST(CpuKernels, EveryInstructionSet) {
  OnEveryInstructionSet([] {
    for (const char* name :
         {"adafactor", "adamw", "add_norm", "add_norm_grad", "dropout", "gated_gelu",
          "gated_gelu_dropout", "gated_gelu_grad", "relu_dropout", "linear_argmax",
          "linear_cross_entropy", "linear_cross_entropy_grad"}) {
      const Op& op = GetOp(name);
      for (const OpCase& sample : op.cases()) CheckCase(op, sample);
    }
  });
}

// Every 2^-12th f32 and the neighbours of ties, against the scalar conversion. The processor's own
// instruction takes subnormals for zero; others keep them.
TEST(Rounding, ToBFloat16IsToNearestEven) {
  std::vector<float> from;
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 4093) {
    from.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (uint32_t high = 0; high < 1u << 16; ++high) {
    for (const uint32_t low : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      from.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  const Shape shape{std::ssize(from)};
  OnEveryInstructionSet([&] {
    std::vector<BFloat16> to(from.size());
    const auto copy = cpu_copy({.inputs = {{DType::kF32, shape}},
                                .outputs = {{DType::kBF16, shape}},
                                .accumulate = {false}});
    void *in = from.data(), *out = to.data();
    copy->run({.inputs = {&in, 1}, .outputs = {&out, 1}, .workspace = nullptr});
    int64_t wrong = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const uint16_t expected = ToBFloat16(from[i]).bits;
      const bool flushed = std::fpclassify(from[i]) == FP_SUBNORMAL &&
                           ToFloat(to[i]) == std::copysign(0.0f, from[i]);
      const bool nans = std::isnan(from[i]) && std::isnan(ToFloat(to[i]));
      wrong += to[i].bits != expected && !flushed && !nans;
    }
    EXPECT_EQ(0, wrong);
  });
}

// Whether bf16 is known depends on the processor; f32 is, wherever tests run.
TEST(Peak, OfProducts) {
  EXPECT_GT(MeasurePeakFlops(DType::kF32, kBriefPeakSeconds), 0);
  const double brain = MeasurePeakFlops(DType::kBF16, kBriefPeakSeconds);
  EXPECT_TRUE(std::isnan(brain) || brain > 0) << brain;
  EXPECT_THROW(MeasurePeakFlops(DType::kI32, kBriefPeakSeconds), Error);
}

}  // namespace
}  // namespace syntra
