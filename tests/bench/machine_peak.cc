// SPDX-License-Identifier: Apache-2.0
// Measures the machine's peak FLOP/s (kernels/cpu/peak.h) on one thread and on all threads
// together. Prints JSON, in 1e9 FLOP/s:
//   {"threads": 2, "fp32": {"one": 117.4, "all": 234.8}, "bf16": {"one": 234.7, "all": 469.2}}
// An unknown value is null.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "core/thread.h"
#include "kernels/cpu/peak.h"

namespace syntra {
namespace {

double Peak(DType type, int threads) {
  constexpr double kSeconds = 1;
  SetThreadCount(threads);
  return 1e-9 * MeasurePeakFlops(type, kSeconds);
}

std::string Row(DType type, int threads) {
  const double one = Peak(type, 1);
  if (std::isnan(one)) return "null";
  return fmt::format(R"({{"one": {:.1f}, "all": {:.1f}}})", one, Peak(type, threads));
}

int Main(int argc, char** argv) {
  int threads = ProcessorCount();
  if (argc > 1) {
    const char* end = argv[1] + std::strlen(argv[1]);
    if (argc > 2 || std::from_chars(argv[1], end, threads).ptr != end || threads < 1) {
      fmt::print(stderr, "usage: machine_peak [threads]\n");
      return 2;
    }
  }
  fmt::print("{{\"threads\": {}, \"fp32\": {}, \"bf16\": {}}}\n", threads,
             Row(DType::kF32, threads), Row(DType::kBF16, threads));
  return 0;
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) { return syntra::Main(argc, argv); }
