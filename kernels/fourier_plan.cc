// SPDX-License-Identifier: Apache-2.0
#include "kernels/fourier_plan.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace syntra {

FourierPlan FourierPlan::Of(int64_t length) {
  SYNTRA_CHECK(length >= 1, "a Fourier transform of length {}", length);
  FourierPlan plan;
  plan.length = length;
  int64_t rest = length;
  const auto divide = [&](int64_t radix) {
    for (; rest % radix == 0; rest /= radix) plan.radix[plan.passes++] = radix;
  };
  divide(4);
  for (int64_t prime = 2; prime * prime <= rest; ++prime) divide(prime);
  if (rest > 1) divide(rest);
  return plan;
}

int64_t FastFourierLength(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  // 3/4 of it has one pass of radix 3 instead of 4.
  return power % 4 == 0 && power / 4 * 3 >= least ? power / 4 * 3 : power;
}

std::vector<float> RootsOfUnity(int64_t length) {
  std::vector<float> roots(2 * length);
  for (int64_t k = 0; k < length; ++k) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
    roots[k] = static_cast<float>(std::cos(angle));
    roots[length + k] = static_cast<float>(-std::sin(angle));
  }
  return roots;
}

double FourierFlops(int64_t length, double count) {
  const auto n = static_cast<double>(length);
  return 5 * count * n * std::log2(n);
}

}  // namespace syntra
