// SPDX-License-Identifier: Apache-2.0
// Measures the attention kernels: GF/s of forward and backward passes, compared with a loop of
// multiply-adds in registers on every thread.
//
//   attention_bench [batch heads length head_size [part of the lines to run]]
#include <immintrin.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <string_view>

#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/bfloat16.h"
#include "kernels/op.h"
#include "kernels/ops/attention.h"

namespace syntra {
namespace {

using namespace attention;

// With one thread: processor time, which neighbours on a busy machine disturb less.
double Now() {
  timespec now;
  clock_gettime(ThreadCount() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Twelve chains of f32 multiply-adds, more than latency times issue width.
__attribute__((target("avx512f"))) float MultiplyAdds(int64_t count) {
  __m512 sums[12], x = _mm512_set1_ps(1.0f), y = _mm512_set1_ps(1e-9f);
  for (__m512& sum : sums) sum = _mm512_set1_ps(0.0f);
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(x, y, sum);
    asm volatile("" : "+v"(x), "+v"(y));
  }
  __m512 total = sums[0];
  for (int i = 1; i < 12; ++i) total = _mm512_add_ps(total, sums[i]);
  float lanes[16];
  _mm512_storeu_ps(lanes, total);
  return lanes[0];
}

// f32 multiply-adds per second of all threads together, in GF/s; 0 without AVX-512.
double MultiplyAddRate() {
  if (!__builtin_cpu_supports("avx512f")) return 0.0;
  constexpr int64_t kCount = 20'000'000;
  double best = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = Now();
#pragma omp parallel
    {
      volatile float sink = MultiplyAdds(kCount);
      (void)sink;
    }
    best = std::min(best, Now() - start);
  }
  return 2.0 * 16 * 12 * kCount * ThreadCount() / best / 1e9;
}

struct Bench {
  int64_t batch = 4, heads = 8, length = 512, head_size = 64;

  OpCall Call(DType type, std::string_view kind) const {
    std::vector<TensorType> in(kInputCount, TensorType{DType::kNone, {}});
    const TensorType activation{type, {batch, length, heads * head_size}};
    const auto has = [&](const char* part) { return kind.find(part) != kind.npos; };
    in[kValue] = activation;
    if (has("dot")) in[kQuery] = in[kKey] = activation;
    if (has("dense")) {
      in[kU] = activation;
      in[kPositions] = {DType::kF32, {head_size, length}};
    }
    if (has("factorized")) {
      in[kA] = in[kB] = {type, {batch, length, heads * 32}};
    }
    if (has("random")) in[kTable] = {DType::kF32, {heads, length, length}};
    if (has("bias")) in[kBias] = {DType::kF32, {heads, 2 * length - 1}};
    if (has("packed")) {
      in[kQuerySegments] = in[kKeySegments] = {DType::kI32, {batch, length}};
    }
    OpCall call{AttributesOf(heads, {.causal = has("causal")}), in, {}, {}};
    call.outputs = GetOp("attention").infer(call.attributes, call.inputs);
    call.accumulate.resize(call.outputs.size());
    return call;
  }
};

Buffer Fill(const TensorType& type) {
  Buffer buffer(type.bytes() + 64, "benchmark operand");
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 0.3f);
  for (int64_t e = 0; type.present() && e < type.shape.size(); ++e) {
    if (type.dtype == DType::kF32) reinterpret_cast<float*>(buffer.data())[e] = normal(random);
    if (type.dtype == DType::kBF16) {
      reinterpret_cast<BFloat16*>(buffer.data())[e] = ToBFloat16(normal(random));
    }
    // Two segments a row.
    if (type.dtype == DType::kI32) {
      reinterpret_cast<int32_t*>(buffer.data())[e] =
          1 + (e % type.shape[1] >= type.shape[1] / 3 ? 1 : 0);
    }
  }
  return buffer;
}

// Seconds of one run, the best of several.
double Seconds(const char* op, const OpCall& call) {
  const std::optional<BoundKernel> kernel = BindCpuKernel(GetOp(op), call);
  if (!kernel) return 0.0;
  std::vector<Buffer> buffers;
  std::vector<void*> in, out;
  for (const TensorType& type : call.inputs) {
    buffers.push_back(Fill(type));
    in.push_back(type.present() ? buffers.back().data() : nullptr);
  }
  for (const TensorType& type : call.outputs) {
    buffers.push_back(Fill(type));
    out.push_back(type.present() ? buffers.back().data() : nullptr);
  }
  const Buffer workspace(kernel->workspace_bytes, "benchmark workspace");
  double best = 1e9;
  for (int repeat = 0; repeat < 15; ++repeat) {
    const double start = Now();
    kernel->run({in, out, workspace.data()});
    best = std::min(best, Now() - start);
  }
  return best;
}

void Report(const Bench& bench, DType type, const char* kind, const std::string& wanted,
            double rate) {
  const std::string name = std::string(NameOf(type)) + " " + kind;
  if (name.find(wanted) == name.npos) return;
  const OpCall forward = bench.Call(type, kind);
  OpCall backward = forward;
  backward.inputs.resize(kSharedInputs);
  backward.inputs.push_back(forward.outputs[kY]);
  backward.inputs.push_back(forward.outputs[kLogSumExp]);
  backward.inputs.push_back(forward.outputs[kY]);
  backward.outputs = GetOp("attention_grad").infer(backward.attributes, backward.inputs);
  backward.accumulate.assign(backward.outputs.size(), false);
  const double f = Seconds("attention", forward), b = Seconds("attention_grad", backward);
  const double fw = GetOp("attention").flops(forward), bw = GetOp("attention_grad").flops(backward);
  std::printf(
      "%-20s forward %7.2f ms %6.1f GF/s  backward %7.2f ms %6.1f GF/s  both %7.2f ms "
      "%6.1f GF/s (%.0f %% of f32 peak)\n",
      name.c_str(), f * 1e3, fw / f / 1e9, b * 1e3, bw / b / 1e9, (f + b) * 1e3,
      (fw + bw) / (f + b) / 1e9, 100 * (fw + bw) / (f + b) / 1e9 / rate);
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  syntra::Bench bench;
  int64_t* const sizes[] = {&bench.batch, &bench.heads, &bench.length, &bench.head_size};
  for (int i = 1; i < std::min(argc, 5); ++i) *sizes[i - 1] = std::atoll(argv[i]);
  const std::string wanted = argc > 5 ? argv[5] : "";
  const double rate = syntra::MultiplyAddRate();
  std::printf("%d threads, f32 multiply-adds %.1f GF/s; B %lld H %lld T %lld K %lld\n",
              syntra::ThreadCount(), rate, static_cast<long long>(bench.batch),
              static_cast<long long>(bench.heads), static_cast<long long>(bench.length),
              static_cast<long long>(bench.head_size));
  for (syntra::DType type : {syntra::DType::kF32, syntra::DType::kBF16}) {
    for (const char* kind : {"dot", "dot_bias", "dot_causal", "dot_packed", "random", "random_bias",
                             "random_packed", "dense", "factorized", "dot_random"}) {
      syntra::Report(bench, type, kind, wanted, rate);
    }
  }
  return 0;
}
