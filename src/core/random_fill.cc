// The loops below are written for the compiler's vectoriser: plain arrays, no branches, one version
// per instruction set chosen when the program starts. Fused multiply-adds are off in the whole
// project, so all versions give the same bits.
#include "core/random_fill.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/thread.h"

namespace syntra {
namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define SYNTRA_EVERY_ISA __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SYNTRA_EVERY_ISA
#endif
#define SYNTRA_INLINE [[gnu::always_inline]] inline

// Philox blocks handled together, and the values they give.
constexpr int kBlocks = 64;
constexpr int kValues = 4 * kBlocks;

// Words of the counters first .. first + kBlocks - 1, counter by counter: the bits of RandomAt.
SYNTRA_INLINE void PhiloxBlocks(RandomKey key, uint64_t first, uint32_t* words) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    c0[i] = static_cast<uint32_t>(first + i);
    c1[i] = static_cast<uint32_t>((first + i) >> 32);
    c2[i] = c3[i] = 0;
  }
  uint32_t k0 = key.low, k1 = key.high;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t a = uint64_t{0xD2511F53} * c0[i];
      const uint64_t b = uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(b);
      c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(a);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int i = 0; i < kBlocks; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

// Natural logarithm of a positive normal number (exponent and a polynomial in the mantissa, as in
// Cephes' logf); relative error below 1e-6, enough for a random draw.
SYNTRA_INLINE float Logarithm(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  // The mantissa moves to [sqrt(1/2), sqrt(2)).
  const uint32_t shifted = bits + (0x3f800000 - 0x3f3504f3);
  const float exponent = static_cast<float>(static_cast<int32_t>(shifted >> 23) - 127);
  const float f = std::bit_cast<float>((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  float p = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    p = p * f + c;
  }
  return exponent * 0.693147180559945f + (f + f * f * (p * f - 0.5f));
}

// The standard normal quantile at probability tail < 1/2 to the left, positive side: sqrt(2)
// erfinv(1 - 2 tail) by the two polynomials of Giles (2010), "Approximating the erfinv function".
SYNTRA_INLINE float NormalQuantile(float tail) {
  constexpr float kCentre[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                               -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                               -0.00417768164f,  0.246640727f,    1.50140941f};
  constexpr float kTail[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                             -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                             0.00943887047f,   1.00167406f,     2.83297682f};
  const float w = -Logarithm(4.0f * tail * (1.0f - tail));
  const bool central = w < 5.0f;
  const float v = central ? w - 2.5f : std::sqrt(w) - 3.0f;
  float p = central ? kCentre[0] : kTail[0];
  for (int i = 1; i < 9; ++i) p = p * v + (central ? kCentre[i] : kTail[i]);
  return 1.41421356f * p * (1.0f - 2.0f * tail);
}

// One value of the distribution from 32 random bits: bit 0 is the sign, the others the place in the
// tail.
struct NormalDraw {
  float deviation, lowest_tail, tail_width;
  SYNTRA_INLINE float operator()(uint32_t bits) const {
    const float u = (static_cast<float>(static_cast<int32_t>(bits >> 1)) + 0.5f) * 0x1p-31f;
    const float x = NormalQuantile(lowest_tail + u * tail_width) * deviation;
    return (bits & 1) ? x : -x;
  }
};

struct UniformDraw {
  float limit;
  SYNTRA_INLINE float operator()(uint32_t bits) const {
    const float u = (static_cast<float>(static_cast<int32_t>(bits >> 8)) + 0.5f) * 0x1p-24f;
    return (2.0f * u - 1.0f) * limit;
  }
};

template <typename Draw>
SYNTRA_INLINE void FillChunk(RandomKey key, const Draw& draw, int64_t first_block, float* values) {
  uint32_t words[kValues];
  PhiloxBlocks(key, first_block, words);
  for (int i = 0; i < kValues; ++i) values[i] = draw(words[i]);
}

SYNTRA_EVERY_ISA void FillChunks(RandomKey key, NormalDraw draw, int64_t first_block, int64_t count,
                                 float* values) {
  for (int64_t c = 0; c < count; ++c) {
    FillChunk(key, draw, first_block + c * kBlocks, values + c * kValues);
  }
}

SYNTRA_EVERY_ISA void FillChunks(RandomKey key, UniformDraw draw, int64_t first_block,
                                 int64_t count, float* values) {
  for (int64_t c = 0; c < count; ++c) {
    FillChunk(key, draw, first_block + c * kBlocks, values + c * kValues);
  }
}

template <typename Draw>
void Fill(RandomKey key, const Draw& draw, std::span<float> values) {
  const int64_t whole = static_cast<int64_t>(values.size()) / kValues;
  ParallelFor(whole, 16, [&](int64_t begin, int64_t end) {
    FillChunks(key, draw, begin * kBlocks, end - begin, values.data() + begin * kValues);
  });
  float last[kValues];
  FillChunks(key, draw, whole * kBlocks, 1, last);
  std::copy_n(last, values.size() - whole * kValues, values.begin() + whole * kValues);
}

}  // namespace

void FillUniform(RandomKey key, double limit, std::span<float> values) {
  Fill(key, UniformDraw{static_cast<float>(limit)}, values);
}

void FillNormal(RandomKey key, double deviation, double cut, std::span<float> values) {
  const double lowest = cut > 0 ? 0.5 * std::erfc(cut / std::sqrt(2.0)) : 0.0;
  Fill(key,
       NormalDraw{static_cast<float>(deviation), static_cast<float>(lowest),
                  static_cast<float>(0.5 - lowest)},
       values);
}

}  // namespace syntra
