// The machine's arithmetic limit: loops of fused multiply-adds that touch registers only, on one
// thread and on all of them at once. Prints JSON, 1e9 FLOP/s:
//   {"threads": 2, "fp32": {"one": 117.4, "all": 234.8}, "bf16": {"one": 234.7, "all": 469.2}}
// A kind that the processor lacks is null. Matrix units (AMX) are not measured.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace syntra {
namespace {

using Clock = std::chrono::steady_clock;

// Fourteen sums, each an instruction's latency away from its next use on any processor of today,
// and two operands: all sixteen registers that every vector extension has.
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

struct Loop {
  bool available;
  void (*run)(int64_t rounds, uint32_t operand);
  double flops_per_instruction;
  uint32_t operand;  // small numbers: the sums stay finite and never denormal
};

constexpr double kSumsPerRound = 14;
constexpr uint32_t kSmallFloat = 0x3a800000;    // 2^-10
constexpr uint32_t kTwoSmallBf16 = 0x3a803a80;  // the same twice

// 1e9 FLOP/s of `threads` threads that run the loop at the same time.
double RateOf(const Loop& loop, int threads, int64_t rounds) {
  std::atomic<int> waiting{threads};
  std::vector<Clock::time_point> begins(threads), ends(threads);
  const auto work = [&](int thread) {
    loop.run(rounds / 20 + 1, loop.operand);
    --waiting;
    while (waiting.load() > 0) std::this_thread::yield();
    begins[thread] = Clock::now();
    loop.run(rounds, loop.operand);
    ends[thread] = Clock::now();
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  const double seconds = std::chrono::duration<double>(*std::ranges::max_element(ends) -
                                                       *std::ranges::min_element(begins))
                             .count();
  return static_cast<double>(rounds) * kSumsPerRound * loop.flops_per_instruction * threads /
         seconds * 1e-9;
}

// The best of the loops that run here and of several tries of about 0.1 s; 0 if none runs here.
double Peak(const std::vector<Loop>& loops, int threads) {
  double best = 0;
  for (const Loop& loop : loops) {
    if (!loop.available) continue;
    constexpr int64_t kTrial = 200'000;
    const double trial = RateOf(loop, 1, kTrial);
    const auto rounds =
        static_cast<int64_t>(0.1 * trial * 1e9 / (kSumsPerRound * loop.flops_per_instruction));
    for (int i = 0; i < 5; ++i) {
      best = std::max(best, RateOf(loop, threads, std::max(rounds, kTrial)));
    }
  }
  return best;
}

std::string Row(const std::vector<Loop>& loops, int threads) {
  const double one = Peak(loops, 1);
  if (one == 0) return "null";
  return fmt::format(R"({{"one": {:.1f}, "all": {:.1f}}})", one, Peak(loops, threads));
}

int AvailableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int Main(int argc, char** argv) {
  int threads = AvailableProcessors();
  if (argc > 1) {
    const char* end = argv[1] + std::strlen(argv[1]);
    if (argc > 2 || std::from_chars(argv[1], end, threads).ptr != end || threads < 1) {
      fmt::print(stderr, "usage: machine_peak [threads]\n");
      return 2;
    }
  }
  __builtin_cpu_init();
  const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  const bool narrow_bf16 = bf16 && __builtin_cpu_supports("avx512vl");
  const std::vector<Loop> single = {{fma, FmaOf256, 16, kSmallFloat},
                                    {avx512, FmaOf512, 32, kSmallFloat}};
  const std::vector<Loop> brain = {{narrow_bf16, DotBf16Of256, 32, kTwoSmallBf16},
                                   {bf16, DotBf16Of512, 64, kTwoSmallBf16}};
  fmt::print("{{\"threads\": {}, \"fp32\": {}, \"bf16\": {}}}\n", threads, Row(single, threads),
             Row(brain, threads));
  return 0;
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) { return syntra::Main(argc, argv); }
