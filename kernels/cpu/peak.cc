// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/peak.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "core/thread.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/processor.h"

namespace syntra {
namespace {

// Fourteen sums and two operands use the sixteen registers that every vector extension has. With
// fourteen independent sums, each is ready again before its next use on today's processors. This is
// assembly because a compiler guarantees none of it (and Highway 1.0.3 has no bf16 product).
// clang-format off
#define SYNTRA_PEAK_LOOP(name, instruction, register)                                       \
  void name(int64_t rounds, uint32_t operand) {                                             \
    asm volatile("vzeroall\n\t"                                                             \
                 "vbroadcastss %1, %%" register "14\n\t"                                    \
                 "vbroadcastss %1, %%" register "15\n\t"                                    \
                 "1:\n\t"                                                                   \
                 ".irp sum, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13\n\t"               \
                 instruction " %%" register "14, %%" register "15, %%" register "\\sum\n\t" \
                 ".endr\n\t"                                                                \
                 "dec %0\n\t"                                                               \
                 "jnz 1b\n\t"                                                               \
                 "vzeroupper"                                                               \
                 : "+r"(rounds)                                                             \
                 : "m"(operand)                                                             \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",    \
                 "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");     \
  }
// clang-format on

SYNTRA_PEAK_LOOP(FmaOf256, "vfmadd231ps", "ymm")
SYNTRA_PEAK_LOOP(FmaOf512, "vfmadd231ps", "zmm")
SYNTRA_PEAK_LOOP(DotBf16Of256, "vdpbf16ps", "ymm")
SYNTRA_PEAK_LOOP(DotBf16Of512, "vdpbf16ps", "zmm")

void TilesOfBf16(int64_t rounds, uint32_t) { AmxTiles().MultiplyInRegisters(rounds); }

struct Loop {
  void (*run)(int64_t rounds, uint32_t operand);
  double round_flops;
  uint32_t operand;  // a small number, so that the sums stay finite and never denormal
};

constexpr int kTries = 10;
constexpr double kSumsPerRound = 14;
constexpr int64_t kRounds = 40000;  // 100 us or more, so that reading the clock costs little
constexpr uint32_t kSmallFloat = 0x3a800000;    // 2^-10
constexpr uint32_t kTwoSmallBf16 = 0x3a803a80;  // the same twice

// Wider vectors are not faster on every processor, so both widths are measured.
std::vector<Loop> LoopsFor(DType type) {
  SYNTRA_CHECK(type == DType::kF32 || type == DType::kBF16, "no products of {}", NameOf(type));
  std::vector<Loop> loops;
  if (type == DType::kF32) {
    if (kProcessor.avx2_fma) {
      loops.push_back({FmaOf256, kSumsPerRound * 16, kSmallFloat});
    }
    if (kProcessor.avx512) loops.push_back({FmaOf512, kSumsPerRound * 32, kSmallFloat});
  } else if (AmxMultipliesBFloat16()) {
    loops.push_back({TilesOfBf16, AmxTiles::kRoundFlops, 0});
  } else if (kProcessor.avx512_bf16) {
    if (kProcessor.avx512vl) {
      loops.push_back({DotBf16Of256, kSumsPerRound * 32, kTwoSmallBf16});
    }
    loops.push_back({DotBf16Of512, kSumsPerRound * 64, kTwoSmallBf16});
  }
  return loops;
}

double ThreadSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

// FLOP per second of processor time of the calling thread.
double RateOfThread(const Loop& loop, double seconds) {
  const double begin = ThreadSeconds();
  double flops = 0, elapsed = 0;
  while (elapsed < seconds) {
    loop.run(kRounds, loop.operand);
    flops += kRounds * loop.round_flops;
    elapsed = ThreadSeconds() - begin;
  }
  return flops / elapsed;
}

// The sum over the threads, scaled down if there are more threads than processors.
double RateOfAllThreads(const Loop& loop, double seconds) {
  std::vector<double> rates(ThreadCount());
  ParallelFor(ThreadCount(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) rates[i] = RateOfThread(loop, seconds);
  });
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  return sum * std::min(1.0, static_cast<double>(ProcessorCount()) / ThreadCount());
}

}  // namespace

double MeasurePeakFlops(DType type, double seconds) {
  const std::vector<Loop> loops = LoopsFor(type);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  double best = NAN;
  // On a busy machine a try takes longer, and fewer tries are made.
  do {
    for (const Loop& loop : loops) {
      const double share = seconds / static_cast<double>(kTries * loops.size());
      best = std::fmax(best, RateOfAllThreads(loop, share));
    }
  } while (!loops.empty() && Clock::now() < end);
  return best;
}

double UsualShareOfPeak(DType type) {
  // Caches and memory of the processors with AMX were slower, measured by their multiply-adds.
  if (AmxMultipliesBFloat16()) return type == DType::kF32 ? 0.60 : 0.10;
  return type == DType::kF32 ? 0.80 : 0.75;
}

}  // namespace syntra
