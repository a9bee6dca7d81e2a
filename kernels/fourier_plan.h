// SPDX-License-Identifier: Apache-2.0
// A discrete Fourier transform of any length as passes of short ones (Cooley and Tukey 1965, in
// Stockham's order: each pass reads one array and writes another, and the results are in order).
//
// A pass of radix r, where p is the product of the radices before it, makes of n = length numbers
//   out[(i / p) p r + i % p + q p] = sum_s w^(s (i % p + q p) n / (p r)) in[i + s n / r]
// for i < n / r and q < r, with w = exp(-2 pi i / n).
#pragma once

#include <cstdint>
#include <vector>

#include "base/host_device.h"

namespace syntra {

struct FourierPlan {
  static constexpr int kMostPasses = 40;  // more than any length of 64 bits has

  int64_t length = 1;
  int passes = 0;
  int64_t radix[kMostPasses] = {};

  // The radices are 4, then what is left of the length's prime factors. Costs grow with the largest
  // of them: a prime length is a sum of `length` terms for each number.
  static FourierPlan Of(int64_t length);
};

// A length of at least `least` whose transform takes little time.
int64_t FastFourierLength(int64_t least);

// exp(-2 pi i k / length) for k < length: all real parts, then all imaginary parts.
std::vector<float> RootsOfUnity(int64_t length);

// The operations of a transform of `count` sequences of complex numbers, by the usual convention of
// 5 n log2 n for one.
double FourierFlops(int64_t length, double count);

}  // namespace syntra
