// SPDX-License-Identifier: Apache-2.0
// Compares the CPU kernels with the machine's limits: matrix products with the peak of its
// multiply-adds, memory-bound kernels with copying. Needs an idle machine, except with
// OMP_NUM_THREADS=1.
//   kernel_bench [substring of the lines to run]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/attention_call.h"
#include "kernels/bfloat16.h"
#include "kernels/bit_mask.h"
#include "kernels/bound_kernel.h"
#include "kernels/cpu/peak.h"
#include "kernels/op.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

// Seconds. With a single thread, CPU time: other processes disturb it less.
double Now() {
  return ThreadCount() == 1 ? SecondsOf(CLOCK_THREAD_CPUTIME_ID) : MonotonicSeconds();
}

// The shortest of many runs: what is left when nobody else runs.
template <typename Body>
double BestSeconds(const Body& body, double budget = 0.6) {
  body();
  double best = 1e30, start = Now();
  for (int runs = 0; runs < 5 || Now() - start < budget; ++runs) {
    const double begin = Now();
    body();
    best = std::min(best, Now() - begin);
  }
  return best;
}

struct Machine {
  double f32_gflops = 0.0, bf16_gflops = 0.0, copy_gbytes = 0.0;
};

struct Options {
  bool accumulate = false;
  std::vector<int> absent;
  // Element i of the i32 operands: valid ids and targets.
  std::function<int32_t(int64_t)> integers = [](int64_t i) {
    return static_cast<int32_t>(1 + i * 7919 % 32000);
  };
};

// One op call with its memory.
class Workload {
 public:
  Workload(const std::string& op, const Attributes& attributes, std::vector<TensorType> inputs,
           const Options& options)
      : op_(GetOp(op)), integers_(options.integers) {
    call_ = {attributes, inputs, op_.infer(attributes, inputs), {}};
    call_.accumulate.assign(call_.outputs.size(), options.accumulate);
    for (int i : options.absent) call_.outputs[i] = None();
    kernel_ = BindCpuKernel(op_, call_);
    if (!kernel_) return;
    workspace_ = Buffer(kernel_->workspace_bytes + 64, "workspace");
    for (const TensorType& type : call_.inputs) inputs_.push_back(Allocate(type));
    for (const TensorType& type : call_.outputs) outputs_.push_back(Allocate(type));
  }

  bool bound() const { return kernel_.has_value(); }
  double Seconds() const {
    return BestSeconds([this] { kernel_->run({inputs_, outputs_, workspace_.data()}); });
  }
  double flops() const { return op_.flops(call_); }
  // Each operand once; what is updated or added to, twice.
  double bytes() const {
    double total = 0.0;
    for (const TensorType& type : call_.inputs) total += Size(type);
    for (size_t i = 0; i < call_.outputs.size(); ++i) {
      total += Size(call_.outputs[i]) * (op_.updates || call_.accumulate[i] ? 2.0 : 1.0);
    }
    return total;
  }
  bool bf16() const {
    return std::ranges::any_of(call_.inputs,
                               [](const TensorType& type) { return type.dtype == DType::kBF16; });
  }

 private:
  static double Size(const TensorType& type) {
    return type.present() ? static_cast<double>(type.bytes()) : 0.0;
  }

  void* Allocate(const TensorType& type) {
    if (!type.present()) return nullptr;
    Buffer& memory = memory_.emplace_back(type.bytes() + 64, "operand");
    // Small positive numbers: dense data without subnormals.
    for (int64_t i = 0; i < type.shape.size(); ++i) {
      const float value = 0.01f * static_cast<float>(1 + (i * 7919) % 97);
      if (type.dtype == DType::kF32) reinterpret_cast<float*>(memory.data())[i] = value;
      if (type.dtype == DType::kBF16) {
        reinterpret_cast<BFloat16*>(memory.data())[i] = ToBFloat16(value);
      }
      if (type.dtype == DType::kI32) reinterpret_cast<int32_t*>(memory.data())[i] = integers_(i);
    }
    return memory.data();
  }

  const Op& op_;
  std::function<int32_t(int64_t)> integers_;
  OpCall call_;
  std::optional<BoundKernel> kernel_;
  std::vector<Buffer> memory_;
  Buffer workspace_;
  std::vector<void*> inputs_, outputs_;
};

class Bench {
 public:
  Bench(Machine machine, std::string filter) : machine_(machine), filter_(std::move(filter)) {}

  void Run(const std::string& label, const std::string& op, const Attributes& attributes,
           std::vector<TensorType> inputs, const Options& options) const {
    const std::string line = fmt::format("{} {}", op, label);
    if (line.find(filter_) == std::string::npos) return;
    const Workload workload(op, attributes, std::move(inputs), options);
    if (!workload.bound()) {
      fmt::print("{:44} no CPU kernel\n", line);
      return;
    }
    const double seconds = workload.Seconds();
    if (GetOp(op).flops != nullptr) {
      const double rate = workload.flops() / seconds / 1e9;
      const double peak = workload.bf16() ? machine_.bf16_gflops : machine_.f32_gflops;
      fmt::print("{:44} {:9.1f} us {:7.1f} GF/s {:5.1f} % of peak\n", line, seconds * 1e6, rate,
                 100 * rate / peak);
    } else {
      const double rate = workload.bytes() / seconds / 1e9;
      fmt::print("{:44} {:9.1f} us {:7.1f} GB/s {:5.1f} % of copy\n", line, seconds * 1e6, rate,
                 100 * rate / machine_.copy_gbytes);
    }
    std::fflush(stdout);
  }

  void Products(DType dtype) const;
  void AttentionScores(DType dtype) const;
  void Vocabulary(DType dtype) const;
  void Activations(DType dtype) const;
  void Parameters() const;

 private:
  Machine machine_;
  std::string filter_;
};

// The products of a layer of T5-small, batch 4 x 512: forward, input gradients, weight gradients.
void Bench::Products(DType dtype) const {
  const std::string name(NameOf(dtype));
  const auto with = [](bool a, bool b, const std::string& type,
                       Attributes::Integers rows_first = {}) {
    return Attributes{{"transpose_a", a},
                      {"transpose_b", b},
                      {"dtype", type},
                      {"rows_first", std::move(rows_first)}};
  };
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{2048, 512, 512}, {2048, 2048, 512}, {2048, 512, 2048}}) {
    const std::string shape = fmt::format("{}x{}x{} {}", m, n, k, name);
    Run(shape, "matmul", with(false, false, name), {{dtype, {m, k}}, F32({k, n})}, {});
    Run(shape + " NT", "matmul", with(false, true, name), {{dtype, {m, k}}, F32({n, k})}, {});
    Run(fmt::format("{}x{}x{} {} TN +=", k, n, m, name), "matmul", with(true, false, "f32"),
        {{dtype, {m, k}}, {dtype, {m, n}}}, {.accumulate = true});
  }
  const TensorType narrow = {dtype, {2048, 512}}, mask = MaskOf({2048, 2048});
  const std::string wide = "2048x2048x512 " + name;
  Run(wide, "matmul_relu", with(false, false, name), {narrow, F32({512, 2048})}, {.absent = {1}});
  Run(wide + " mask", "matmul_relu", with(false, false, name), {narrow, F32({512, 2048})}, {});
  Run(wide, "masked_matmul", with(false, true, name), {narrow, F32({2048, 512}), mask}, {});
  const TensorType x = {dtype, {8, 512, 512}}, table = F32({512, 512}), heads = F32({8, 512, 512});
  const Attributes straight = {{"transpose", false}};
  const Attributes::Integers one = {512, 512}, eight = {8, 512, 512};
  Run(name, "shared_matmul", straight, {table, x}, {});
  Run(name + " heads", "shared_matmul", straight, {heads, x}, {});
  Run(name, "shared_matmul_grad", {{"shape", one}}, {x, x}, {});
  Run(name + " heads", "shared_matmul_grad", {{"shape", eight}}, {x, x}, {});
  Run(name, "batch_matmul", with(false, true, name),
      {{dtype, {8, 8, 512, 64}}, {dtype, {8, 8, 512, 64}}}, {});
  Run(name + " heads in rows", "batch_matmul", with(false, true, name, {0, 1}),
      {{dtype, {8, 512, 8, 64}}, {dtype, {8, 512, 8, 64}}}, {});
  const TensorType keys = {dtype, {32, 64, 8, 64}}, values = {dtype, {32, 64, 8, 128}};
  Run(name + " chunks, scores", "batch_matmul", with(false, true, name, {0, 1}), {keys, keys}, {});
  Run(name + " chunks, sums", "batch_matmul", with(true, false, name, {0, 1}), {keys, values}, {});
  Run("456x512x32128 " + name, "matmul", with(false, true, "f32"),
      {{dtype, {456, 512}}, F32({32128, 512})}, {});
}

// Attention of T5-small, batch 4 x 512, with each kind of scores.
void Bench::AttentionScores(DType dtype) const {
  using namespace attention;
  constexpr int64_t kBatch = 4, kHeads = 8, kLength = 512, kHeadSize = 64;
  const TensorType activation{dtype, {kBatch, kLength, kHeads * kHeadSize}};
  const Options two_segments{
      .integers = [](int64_t i) { return i % kLength < kLength / 3 ? 1 : 2; }};
  for (const std::string kind :
       {"dot", "dot_bias", "dot_causal", "dot_packed", "random", "random_bias", "random_packed",
        "dense", "factorized", "dot_random"}) {
    const auto has = [&](const char* part) { return kind.find(part) != kind.npos; };
    std::vector<TensorType> in(kInputCount, None());
    in[kValue] = activation;
    if (has("dot")) in[kQuery] = in[kKey] = activation;
    if (has("dense")) {
      in[kU] = activation;
      in[kPositions] = F32({kHeadSize, kLength});
    }
    if (has("factorized")) in[kA] = in[kB] = {dtype, {kBatch, kLength, kHeads * 32}};
    if (has("random")) in[kTable] = F32({kHeads, kLength, kLength});
    if (has("bias")) in[kBias] = F32({kHeads, 2 * kLength - 1});
    if (has("packed")) in[kQuerySegments] = in[kKeySegments] = I32({kBatch, kLength});
    const Attributes attributes = AttributesOf(kHeads, {.causal = has("causal")});
    const std::string name = kind + " " + std::string(NameOf(dtype));
    Run(name, "attention", attributes, in, two_segments);
    const std::vector<TensorType> out = GetOp("attention").infer(attributes, in);
    in.resize(kSharedInputs);
    in.insert(in.end(), {out[kY], out[kLogSumExp], out[kY]});
    Run(name, "attention_grad", attributes, in, two_segments);
  }
}

void Bench::Vocabulary(DType dtype) const {
  const std::string name(NameOf(dtype));
  const Attributes loss{
      {"scale", 0.04}, {"z_loss", 1e-4}, {"label_smoothing", 0.0}, {"first", int64_t{0}}};
  std::vector<TensorType> inputs = {
      {dtype, {4, 114, 512}}, F32({32128, 512}), I32({4, 114}), F32({1})};
  Run(name, "linear_cross_entropy", loss, inputs, {});
  inputs.push_back(F32({1}));
  Run(name, "linear_cross_entropy_grad", loss, inputs, {});
  Run(name, "linear_argmax", loss, {{dtype, {4, 1, 512}}, F32({32128, 512})}, {});
}

void Bench::Activations(DType dtype) const {
  const std::string name(NameOf(dtype));
  const TensorType x{dtype, {32, 512, 512}};
  const TensorType keys = I32({32, 2}), scale = F32({512}), rms = F32({32, 512});
  const auto noise = [](double rate, bool per_element) {
    return Attributes{
        {"epsilon", 1e-6}, {"rate", rate}, {"site", 3}, {"per_element", per_element}, {"group", 1}};
  };
  Run(name, "copy", {{"dtype", name}}, {x}, {});
  Run(name + " to the other", "copy", {{"dtype", dtype == DType::kF32 ? "bf16" : "f32"}}, {x}, {});
  Run(name, "add_norm", noise(0.0, true), {x, x, scale, None()}, {});
  Run(name + " element", "add_norm", noise(0.1, true), {x, x, scale, keys}, {});
  Run(name + " shared", "add_norm", noise(0.1, false), {x, x, scale, keys}, {});
  Run(name, "add_norm_grad", noise(0.0, true), {x, scale, rms, x, x, None()}, {});
  Run(name + " element", "add_norm_grad", noise(0.1, true), {x, scale, rms, x, x, keys}, {});
  Run(name + " element", "dropout", noise(0.1, true), {x, keys}, {});
  Run(name + " shared", "dropout", noise(0.1, false), {x, keys}, {});
  Run(name, "gated_gelu", {}, {x, x}, {});
  Run(name, "gated_gelu_grad", {}, {x, x, x}, {});
  const auto type = [](const TensorType& of) {
    return Attributes{
        {"shape", Attributes::Integers(of.shape.dims().begin(), of.shape.dims().end())},
        {"dtype", std::string(NameOf(of.dtype))}};
  };
  Run(name + " bias", "add", {}, {x, scale}, {});
  Run(name + " bias", "sum_to", type(scale), {x, None()}, {});
  Run(name + " one", "multiply", {}, {x, F32({1})}, {});
  Run(name + " one", "sum_to", type(F32({1})), {x, x}, {});
  Run(name + " rows", "sum_to", type(F32({32, 512, 1})), {x, x}, {});
  for (const char* kind : {"relu", "gelu_tanh", "gelu_erf", "silu", "tanh"}) {
    Run(name + " " + kind, "activation", {{"kind", kind}}, {x}, {});
    Run(name + " " + kind, "activation_grad", {{"kind", kind}}, {x, x}, {});
  }
  Run(name, "softmax", {}, {x}, {});
  Run(name, "softmax_grad", {}, {x, x}, {});
  Run(name, "layer_norm", {{"epsilon", 1e-5}}, {x, scale, scale}, {});
  Run(name, "layer_norm_grad", {}, {x, scale, rms, rms, x}, {});
  Run(name, "cumulative_sum", {{"axis", 1}, {"reverse", false}, {"exclusive", false}}, {x}, {});
  const Attributes::Integers heads_first = {0, 2, 1, 3}, columns_first = {0, 2, 1};
  Run(name + " heads", "transpose", {{"axes", heads_first}}, {{dtype, {32, 512, 8, 64}}}, {});
  Run(name + " columns", "transpose", {{"axes", columns_first}}, {x}, {});
  Run(name, "concatenate", {{"axis", 2}}, {x, x}, {});
  Run(name, "embedding", {{"dtype", name}}, {I32({32, 512}), F32({32128, 512})}, {});
  Run(name, "embedding_grad", {{"vocabulary", 32128}}, {I32({32, 512}), x}, {.accumulate = true});
}

void Bench::Parameters() const {
  const TensorType table = F32({32128, 512});
  for (bool rms_scaled : {false, true}) {
    Run(rms_scaled ? "rms" : "plain", "adamw",
        {{"beta1", 0.9}, {"beta2", 0.98}, {"epsilon", 1e-6}, {"rms_scaled", rms_scaled}},
        {table, F32({5})}, {});
  }
  for (int64_t column_axis : {1, -1}) {
    Run(column_axis < 0 ? "full" : "factored", "adafactor",
        {{"row_axis", 0}, {"column_axis", column_axis}, {"clip_threshold", 1.0}}, {table, F32({3})},
        {});
  }
  const Attributes::Integers rows = {32128, 1};
  Run("squares", "sum_to", {{"shape", rows}, {"dtype", "f32"}}, {table, table}, {});
}

int Main(int argc, char** argv) {
  Machine machine;
  constexpr double kSeconds = 0.5;
  machine.f32_gflops = 1e-9 * MeasurePeakFlops(DType::kF32, kSeconds);
  machine.bf16_gflops = 1e-9 * MeasurePeakFlops(DType::kBF16, kSeconds);
  const TensorType large = F32({64, 1024, 1024});
  const Workload copy("copy", {{"dtype", "f32"}}, {large}, {});
  machine.copy_gbytes = copy.bytes() / copy.Seconds() / 1e9;
  fmt::print("{} threads; peak {:.1f} GF/s f32, {:.1f} GF/s bf16; copy {:.1f} GB/s\n",
             ThreadCount(), machine.f32_gflops, machine.bf16_gflops, machine.copy_gbytes);
  const Bench bench(machine, argc > 1 ? argv[1] : "");
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    bench.Products(dtype);
    bench.AttentionScores(dtype);
    bench.Vocabulary(dtype);
    bench.Activations(dtype);
  }
  bench.Parameters();
  return 0;
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) { return syntra::Main(argc, argv); }
