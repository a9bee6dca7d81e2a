// SPDX-License-Identifier: Apache-2.0
// Measures the GPU's attention and norm kernels as T5-base and its Synthesizers call them: the
// cases that the goals name, and those of training, whose rows have segments and whose targets are
// 114 long; what a ReLU and its mask add to the products of a feed-forward network; and three
// projections, one by one and as one product. Prints a line of JSON for the device and one for each
// case:
//   {"name": "shared attention", "op": "attention", "seconds": 1e-4, "samples": [...],
//    "flops": 1.0e11, "bytes": 2e8, "tflops_per_second": 1000.0, "gbytes_per_second": 2000.0}
// seconds is the median sample; a sample is the mean of several consecutive runs, timed by events.
// flops counts the products of pairs that are allowed, without what a backward pass recomputes;
// bytes counts every operand once. So both are the least that a kernel must do. What fails is a
// line, too, {"name": "...", "error": "..."}, and the others go on as long as the GPU works; then
// the exit code is 1.
//
//   gpu_kernel_bench [BATCH [LENGTH]]    128 examples of 512 positions by default
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/divide.h"
#include "base/error.h"
#include "base/json.h"
#include "kernels/attention_call.h"
#include "kernels/bfloat16.h"
#include "kernels/cuda.h"
#include "kernels/cuda/check.h"
#include "kernels/math/relative_bucket.h"
#include "kernels/op.h"
#include "kernels/ops/shapes.h"
#include "tests/bench/timed_lines.h"

namespace syntra {
namespace {

constexpr int kSkipped = 77;
constexpr int64_t kHeads = 12, kHeadSize = 64, kWidth = 768, kHidden = 3072;
constexpr int64_t kFactorA = 32;  // columns of a factorized dense score matrix's first factor

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t bytes) {
    if (bytes > 0) SYNTRA_CUDA(cudaMalloc(&data_, bytes));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class Event {
 public:
  Event() { SYNTRA_CUDA(cudaEventCreate(&event_)); }
  Event(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  void Record(cudaStream_t stream) { SYNTRA_CUDA(cudaEventRecord(event_, stream)); }
  // Waits for this event.
  double SecondsSince(const Event& start) const {
    float milliseconds = 0;
    SYNTRA_CUDA(cudaEventSynchronize(event_));
    SYNTRA_CUDA(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  Stream() { SYNTRA_CUDA(cudaStreamCreate(&stream_)); }
  Stream(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Consecutive runs as one CUDA graph, as in training: the host's calls take no part in their time.
class Graph {
 public:
  template <typename Enqueue>
  Graph(cudaStream_t stream, int runs, const Enqueue& enqueue) : stream_(stream) {
    cudaGraph_t recorded = nullptr;
    SYNTRA_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      for (int i = 0; i < runs; ++i) enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream, &recorded);  // without that nothing else may be called
      throw;
    }
    SYNTRA_CUDA(cudaStreamEndCapture(stream, &recorded));
    SYNTRA_CUDA(cudaGraphInstantiate(&graph_, recorded, 0));
    SYNTRA_CUDA(cudaGraphDestroy(recorded));
  }
  Graph(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(graph_); }

  double Seconds() const {
    Event start, end;
    start.Record(stream_);
    SYNTRA_CUDA(cudaGraphLaunch(graph_, stream_));
    end.Record(stream_);
    return end.SecondsSince(start);
  }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t graph_ = nullptr;
};

// The segment of all positions of rows without padding.
DeviceBuffer Ones(const TensorType& type) {
  const std::vector<int32_t> ones(type.shape.size(), 1);
  DeviceBuffer buffer(type.bytes());
  SYNTRA_CUDA(cudaMemcpy(buffer.data(), ones.data(), type.bytes(), cudaMemcpyHostToDevice));
  return buffer;
}

// Normal numbers of a spread that keeps a softmax of dot products busy: a GPU is faster on zeros.
DeviceBuffer RandomTensor(const TensorType& type) {
  constexpr int64_t kPeriod = int64_t{1} << 20;
  static const std::vector<float> floats = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 0.3f);
    std::vector<float> drawn(kPeriod);
    for (float& value : drawn) value = normal(random);
    return drawn;
  }();
  static const std::vector<BFloat16> halves = [] {
    std::vector<BFloat16> rounded(kPeriod);
    std::ranges::transform(floats, rounded.begin(), [](float value) { return ToBFloat16(value); });
    return rounded;
  }();
  if (type.dtype == DType::kI32) return Ones(type);
  DeviceBuffer buffer(type.bytes());
  if (!type.present()) return buffer;
  SYNTRA_CHECK(type.dtype == DType::kF32 || type.dtype == DType::kBF16, "random {}",
               ToString(type));
  const size_t element = SizeOf(type.dtype);
  const void* source = type.dtype == DType::kF32 ? static_cast<const void*>(floats.data())
                                                 : static_cast<const void*>(halves.data());
  for (int64_t at = 0; at < type.shape.size(); at += kPeriod) {
    const size_t bytes = std::min(kPeriod, type.shape.size() - at) * element;
    SYNTRA_CUDA(cudaMemcpy(static_cast<std::byte*>(buffer.data()) + at * element, source, bytes,
                           cudaMemcpyHostToDevice));
  }
  return buffer;
}

double Bytes(const std::vector<TensorType>& types) {
  double bytes = 0;
  for (const TensorType& type : types) bytes += static_cast<double>(type.bytes());
  return bytes;
}

// Operands that lie side by side, in the types of one side of a call.
class Columns {
 public:
  Columns(std::vector<TensorType>& types, size_t first, size_t count)
      : first_(first), end_(first + count) {
    for (size_t i = first_; i < end_; ++i) columns_ += types[i].shape[-1];
    for (size_t i = first_; i < end_; ++i) types[i].pitch = columns_;
  }

  // Whether operand i lies in the memory of the one before.
  bool Follows(size_t i) const { return i > first_ && i < end_; }
  // What an operand that does not needs.
  TensorType MemoryOf(const TensorType& type) const {
    return type.pitch > 0 ? TensorType{type.dtype, {type.shape.rows(), columns_}} : type;
  }

 private:
  size_t first_, end_;
  int64_t columns_ = 0;
};

// One op call bound to operands in the GPU's memory. What the op would have side by side is so.
class Workload {
 public:
  // Operands come from `given` (null: random, or segments of ones). Throws Error(kInternal) if
  // there is no kernel.
  Workload(std::string_view op, OpCall call, std::vector<void*> given = {})
      : op_(GetOp(op)), call_(std::move(call)) {
    call_.outputs = op_.infer(call_.attributes, call_.inputs);
    call_.accumulate.assign(call_.outputs.size(), false);
    bytes_ = Bytes(call_.inputs) + Bytes(call_.outputs);
    const auto [of_outputs, first, count] =
        op_.side_by_side ? op_.side_by_side(call_) : OperandRange{};
    const Columns read(call_.inputs, first, of_outputs ? 0 : count);
    const Columns written(call_.outputs, first, of_outputs ? count : 0);
    std::optional<BoundKernel> kernel = BindCudaKernel(op_, call_);
    SYNTRA_CHECK(kernel.has_value(), "no CUDA kernel for {}", op);
    kernel_ = std::move(*kernel);
    given.resize(call_.inputs.size(), nullptr);
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      if (read.Follows(i)) {
        inputs_.push_back(After(inputs_.back(), call_.inputs[i - 1]));
        continue;
      }
      buffers_.push_back(given[i] ? DeviceBuffer() : RandomTensor(read.MemoryOf(call_.inputs[i])));
      inputs_.push_back(given[i] ? given[i] : buffers_.back().data());
    }
    for (size_t i = 0; i < call_.outputs.size(); ++i) {
      if (written.Follows(i)) {
        outputs_.push_back(After(outputs_.back(), call_.outputs[i - 1]));
        continue;
      }
      buffers_.emplace_back(written.MemoryOf(call_.outputs[i]).bytes());
      outputs_.push_back(buffers_.back().data());
    }
    workspace_ = DeviceBuffer(kernel_.workspace_bytes);
  }

  const OpCall& call() const { return call_; }
  void* input(int i) const { return inputs_[i]; }
  void* output(int i) const { return outputs_[i]; }

  void Run() const {
    kernel_.run({inputs_, outputs_, static_cast<std::byte*>(workspace_.data()), stream_.get()});
  }

  // The mean seconds of a run in each sample, in order of size.
  std::vector<double> Samples() const {
    constexpr int kSamples = 11;
    constexpr double kSampleSeconds = 0.01;
    Run();  // loads the kernels, which no graph could
    const double once = Record(2).Seconds() / 2;
    const int runs = static_cast<int>(std::clamp(kSampleSeconds / once, 1.0, 100.0));
    const Graph graph = Record(runs);
    graph.Seconds();  // the first launch brings the graph to the GPU
    std::vector<double> samples;
    for (int i = 0; i < kSamples; ++i) samples.push_back(graph.Seconds() / runs);
    std::ranges::sort(samples);
    return samples;
  }

  void Report(const std::string& name) const {
    const std::vector<double> samples = Samples();
    const double seconds = samples[samples.size() / 2];
    const double flops = op_.flops ? op_.flops(call_) : 0;
    PrintLine({{"name", name},
               {"op", op_.name},
               {"seconds", seconds},
               {"samples", samples},
               {"flops", flops},
               {"bytes", bytes_},
               {"tflops_per_second", 1e-12 * flops / seconds},
               {"gbytes_per_second", 1e-9 * bytes_ / seconds}});
  }

 private:
  // Where the columns after those of `type` begin.
  static void* After(void* data, const TensorType& type) {
    return static_cast<std::byte*>(data) + type.shape[-1] * SizeOf(type.dtype);
  }

  Graph Record(int runs) const {
    return Graph(stream_.get(), runs, [this] { Run(); });
  }

  const Op& op_;
  OpCall call_;
  BoundKernel kernel_;
  Stream stream_;
  double bytes_ = 0;
  std::vector<DeviceBuffer> buffers_;
  DeviceBuffer workspace_;
  std::vector<void*> inputs_, outputs_;
};

struct Sizes {
  int64_t batch = 128, length = 512;

  int64_t target_length() const { return length * 114 / 512; }
  TensorType activation(int64_t rows, int64_t width = kWidth) const {
    return {DType::kBF16, {batch, rows, width}};
  }
};

// Attention of `queries` positions to `keys`, by the operands that are present.
struct AttentionCase {
  std::string name;
  std::vector<attention::Input> present;
  int64_t queries, keys;
  bool causal = false;
};

TensorType OperandOf(attention::Input input, const AttentionCase& of, const Sizes& sizes) {
  using enum attention::Input;
  switch (input) {
    case kKey:
    case kValue:
      return sizes.activation(of.keys);
    case kPositions:
      return {DType::kF32, {kHeadSize, of.keys}};
    case kA:
      return sizes.activation(of.queries, kHeads * kFactorA);
    case kB:
      return sizes.activation(of.queries, kHeads * DivideUp(of.keys, kFactorA));
    case kTable:
      return {DType::kF32, {kHeads, of.queries, of.keys}};
    case kBias:
      return {DType::kF32, {kHeads, of.queries + of.keys - 1}};
    case kQuerySegments:
      return {DType::kI32, {sizes.batch, of.queries}};
    case kKeySegments:
      return {DType::kI32, {sizes.batch, of.keys}};
    default:  // the query, and u of as many units
      return sizes.activation(of.queries);
  }
}

// The kernels of attention and of its gradient, for the same values.
void ReportAttention(const AttentionCase& of, const Sizes& sizes) {
  using namespace attention;
  std::vector<TensorType> inputs(kInputCount, None());
  for (const Input input : of.present) inputs[input] = OperandOf(input, of, sizes);
  // That of T5's buckets.
  const int64_t reach = inputs[kBias].present() ? T5Buckets(32, !of.causal, 128).Reach() : 0;
  const Attributes attributes = AttributesOf(kHeads, {.causal = of.causal}, 0, reach);
  const Workload forward("attention", {attributes, inputs, {}, {}});
  forward.Report(of.name);

  inputs.resize(kSharedInputs);
  std::vector<void*> given;
  for (int i = 0; i < kSharedInputs; ++i) given.push_back(forward.input(i));
  for (const Output output : {kY, kLogSumExp}) {
    inputs.push_back(forward.call().outputs[output]);
    given.push_back(forward.output(output));
  }
  inputs.push_back(sizes.activation(of.queries));
  Workload("attention_grad", {attributes, inputs, {}, {}}, given).Report(of.name);
}

std::vector<AttentionCase> AttentionCases(const Sizes& sizes) {
  using enum attention::Input;
  const int64_t rows = sizes.length, targets = sizes.target_length();
  const auto with_segments = [](std::vector<attention::Input> operands) {
    operands.insert(operands.end(), {kQuerySegments, kKeySegments});
    return operands;
  };
  return {
      {"shared attention", {kValue, kTable}, rows, rows},
      {"dot product", {kQuery, kKey, kValue}, rows, rows},
      {"dot product with relative bias", {kQuery, kKey, kValue, kBias}, rows, rows},
      {"dot product with table", {kQuery, kKey, kValue, kTable}, rows, rows},
      {"encoder's dot product", with_segments({kQuery, kKey, kValue, kBias}), rows, rows},
      {"encoder's random", with_segments({kValue, kTable, kBias}), rows, rows},
      {"encoder's random and dot product", with_segments({kQuery, kKey, kValue, kTable, kBias}),
       rows, rows},
      {"encoder's dense", with_segments({kValue, kU, kPositions, kBias}), rows, rows},
      {"encoder's factorized dense", with_segments({kValue, kA, kB, kBias}), rows, rows},
      {"decoder's dot product", with_segments({kQuery, kKey, kValue, kBias}), targets, targets,
       true},
      {"decoder's random", with_segments({kValue, kTable, kBias}), targets, targets, true},
      {"decoder's dense", with_segments({kValue, kU, kPositions, kBias}), targets, targets, true},
      {"decoder's factorized dense", with_segments({kValue, kA, kB, kBias}), targets, targets,
       true},
      {"cross-attention", with_segments({kQuery, kKey, kValue}), targets, rows},
  };
}

void ReportNorm(const Sizes& sizes) {
  const TensorType x = sizes.activation(sizes.length), scale{DType::kF32, {kWidth}};
  const Workload forward(
      "add_norm", {{{"epsilon", 1e-6}, {"rate", 0.0}, {"site", int64_t{0}}, {"per_element", false}},
                   {x, x, scale, None()},
                   {},
                   {}});
  forward.Report("residual and norm");
  Workload("add_norm_grad",
           {{{"rate", 0.0}, {"site", int64_t{0}}, {"per_element", false}},
            {x, scale, forward.call().outputs[2], x, x, None()},
            {},
            {}},
           {forward.output(0), forward.input(2), forward.output(2)})
      .Report("residual and norm");
}

// The products that have hidden values as their result, without and with the ReLU and its mask.
void ReportHidden(const Sizes& sizes) {
  const TensorType x = sizes.activation(sizes.length), in{DType::kBF16, {kWidth, kHidden}},
                   out{DType::kBF16, {kHidden, kWidth}};
  const auto with = [](bool transpose_b) {
    return Attributes{{"transpose_a", false}, {"transpose_b", transpose_b}, {"dtype", "bf16"}};
  };
  Workload("matmul", {with(false), {x, in}, {}, {}}).Report("hidden values");
  const Workload forward("matmul_relu", {with(false), {x, in}, {}, {}});
  forward.Report("hidden values");
  Workload("matmul", {with(true), {x, out}, {}, {}}).Report("gradient of hidden values");
  Workload("masked_matmul", {with(true), {x, out, forward.call().outputs[1]}, {}, {}},
           {nullptr, nullptr, forward.output(1)})
      .Report("gradient of hidden values");
}

// One of a layer's projections, and three of them as one product.
void ReportProjections(const Sizes& sizes) {
  const TensorType x = sizes.activation(sizes.length), weights{DType::kF32, {kWidth, kWidth}};
  const Attributes straight{{"transpose_a", false}, {"transpose_b", false}, {"dtype", "bf16"}};
  Workload("matmul", {straight, {x, weights}, {}, {}}).Report("a projection");
  Workload("joint_matmul", {straight, {x, weights, weights, weights}, {}, {}})
      .Report("three projections");
  Workload("joint_matmul_grad", {{}, {x, weights, weights, weights, x, x, x}, {}, {}})
      .Report("three projections");
}

void ReportDevice() {
  cudaDeviceProp device;
  int driver = 0, runtime = 0;
  SYNTRA_CUDA(cudaGetDeviceProperties(&device, 0));
  SYNTRA_CUDA(cudaDriverGetVersion(&driver));
  SYNTRA_CUDA(cudaRuntimeGetVersion(&runtime));
  PrintLine({{"device", device.name},
             {"driver_cuda", CudaVersionText(driver)},
             {"runtime_cuda", CudaVersionText(runtime)}});
}

// Whether `report` did not fail. Throws if the GPU no longer works for this process.
bool Succeeds(const std::string& name, const std::function<void()>& report) {
  try {
    report();
    return true;
  } catch (const Error& error) {
    PrintLine({{"name", name}, {"error", error.what()}});
  }
  cudaGetLastError();  // the next call would report an error that has been told
  SYNTRA_CUDA(cudaDeviceSynchronize());
  return false;
}

// Whether none failed.
bool ReportAll(const Sizes& sizes) {
  bool all = true;
  for (const AttentionCase& each : AttentionCases(sizes)) {
    all &= Succeeds(each.name, [&] { ReportAttention(each, sizes); });
  }
  all &= Succeeds("residual and norm", [&] { ReportNorm(sizes); });
  all &= Succeeds("hidden values", [&] { ReportHidden(sizes); });
  return Succeeds("projections", [&] { ReportProjections(sizes); }) && all;
}

bool ParsePositive(const char* text, int64_t* value) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, *value).ptr == end && *value > 0;
}

int Main(int argc, char** argv) {
  Sizes sizes;
  if (argc > 3 || (argc > 1 && !ParsePositive(argv[1], &sizes.batch)) ||
      (argc > 2 && !ParsePositive(argv[2], &sizes.length))) {
    fmt::print(stderr, "usage: gpu_kernel_bench [BATCH [LENGTH]]\n");
    return 2;
  }
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0) {
    fmt::print(stderr, "SKIPPED: no GPU: {}\n",
               status == cudaSuccess ? "none is visible" : cudaGetErrorString(status));
    return kSkipped;
  }
  ReportDevice();
  return ReportAll(sizes) ? 0 : 1;
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  try {
    return syntra::Main(argc, argv);
  } catch (const syntra::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
