// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/finite.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/text.h"
#include "core/thread.h"

namespace syntra {
namespace {

constexpr int64_t kGrain = int64_t{1} << 16;  // values
constexpr size_t kMostNamed = 3;

// IEEE formats write infinity and NaN with every bit of the exponent set, which integers can be
// compared for several at a time.
template <typename Bits>
int64_t CountWithBits(const std::byte* data, int64_t count, Bits exponent) {
  const auto* values = reinterpret_cast<const Bits*>(data);
  std::atomic<int64_t> total = 0;
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    Bits any = 0;
#pragma omp simd reduction(| : any)
    for (int64_t i = begin; i < end; ++i) any |= (values[i] & exponent) == exponent;
    if (any == 0) return;
    total += std::count_if(values + begin, values + end,
                           [&](Bits bits) { return (bits & exponent) == exponent; });
  });
  return total;
}

}  // namespace

int64_t CountNotFinite(const TensorRecord& tensor) {
  const auto count = static_cast<int64_t>(tensor.type.shape.size());
  switch (tensor.type.dtype) {
    case DType::kF32:
      return CountWithBits<uint32_t>(tensor.data, count, 0x7f800000);
    case DType::kBF16:
      return CountWithBits<uint16_t>(tensor.data, count, 0x7f80);
    case DType::kF64:
      return CountWithBits<uint64_t>(tensor.data, count, 0x7ff0000000000000);
    case DType::kI32:
    case DType::kNone:
      break;
  }
  return 0;
}

std::string NotFinite(std::span<const TensorRecord> tensors) {
  std::vector<std::string> named;
  size_t bad_tensors = 0;
  for (const TensorRecord& tensor : tensors) {
    const int64_t bad = CountNotFinite(tensor);
    if (bad == 0) continue;
    if (++bad_tensors > kMostNamed) continue;
    named.push_back(fmt::format("{} ({} of {} values)", tensor.name, WithThousands(bad),
                                WithThousands(static_cast<int64_t>(tensor.type.shape.size()))));
  }
  if (bad_tensors <= kMostNamed) return Join(named, ", ");
  return fmt::format("{} and {} other tensors", Join(named, ", "), bad_tensors - kMostNamed);
}

void CheckFinite(const Path& path, std::span<const TensorRecord> tensors) {
  const std::string bad = NotFinite(tensors);
  if (bad.empty()) return;
  Fail(ExitCode::kCheckpoint,
       "{} holds values that are not finite, so nothing can be computed with it: {}; use an older "
       "or another one",
       path.string(), bad);
}

}  // namespace syntra
