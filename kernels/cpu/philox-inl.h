// Philox4x32-10 (Salmon et al. 2011) for runs of consecutive counters, and the keep decisions of random
// masks: element e of a row is decided by word e % 4 of RandomAt(key, e / 4, site).
#if defined(SYNTRA_KERNELS_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_PHILOX_INL_H_
#undef SYNTRA_KERNELS_CPU_PHILOX_INL_H_
#else
#define SYNTRA_KERNELS_CPU_PHILOX_INL_H_
#endif

#include "core/random.h"
#include "kernels/cpu/keep.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

using WordTag = hn::RebindToUnsigned<FloatTag>;

#if HWY_TARGET == HWY_SCALAR

inline int64_t CountersPerVector() { return 1; }

inline void PhiloxVector(RandomKey key, uint64_t counter, uint64_t site, uint32_t* words) {
  const RandomBits bits = RandomAt(key, counter, site);
  for (int i = 0; i < 4; ++i) words[i] = bits[i];
}

#else

// Words are held one to a 64-bit lane: the widening product then leaves its two halves where the next
// round wants them, and the garbage in the upper halves is never read.
using WideTag = hn::Repartition<uint64_t, WordTag>;
using WideVector = hn::Vec<WideTag>;

HWY_INLINE WideVector WideProduct(WideVector a, WideVector b) {
  const WordTag d;
  return hn::MulEven(hn::BitCast(d, a), hn::BitCast(d, b));
}

inline int64_t CountersPerVector() { return static_cast<int64_t>(hn::Lanes(WideTag())); }

// 4 * CountersPerVector() words, of the counters from `counter` on.
HWY_INLINE void PhiloxVector(RandomKey key, uint64_t counter, uint64_t site, uint32_t* words) {
  const WideTag d;
  const auto counters = hn::Add(hn::Set(d, counter), hn::Iota(d, 0));
  WideVector c0 = counters, c1 = hn::ShiftRight<32>(counters);
  WideVector c2 = hn::Set(d, site), c3 = hn::Set(d, site >> 32);
  const WideVector m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  uint32_t k0 = key.low, k1 = key.high;
  HWY_UNROLL(10)
  for (int round = 0; round < 10; ++round) {
    const WideVector p0 = WideProduct(c0, m0), p1 = WideProduct(c2, m1);
    c0 = hn::Xor3(hn::ShiftRight<32>(p1), c1, hn::Set(d, uint64_t{k0}));
    c2 = hn::Xor3(hn::ShiftRight<32>(p0), c3, hn::Set(d, uint64_t{k1}));
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const WideVector low = hn::Set(d, 0xFFFFFFFFu);
  const WideVector first = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
  const WideVector second = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
  hn::StoreInterleaved2(first, second, d, reinterpret_cast<uint64_t*>(words));
}

#endif

// Words [first, first + count) of a row's noise, at most kBlock of them.
class NoiseWords {
 public:
  static constexpr int64_t kBlock = 512;

  // The words, valid until the next call; reads of whole vectors beyond the end stay in bounds.
  HWY_INLINE const uint32_t* Fill(RandomKey key, uint64_t site, int64_t first, int64_t count) {
    const int64_t step = 4 * CountersPerVector();
    const int64_t skipped = first % 4;
    for (int64_t i = 0; i < skipped + count; i += step) {
      PhiloxVector(key, static_cast<uint64_t>((first - skipped + i) / 4), site, words_ + i);
    }
    return words_ + skipped;
  }

 private:
  alignas(64) uint32_t words_[kBlock + 64];
};

// The value scaled where the words say keep, zero elsewhere.
HWY_INLINE FloatVector KeepScaled(FloatVector value, const uint32_t* words, const Keep& keep) {
  const FloatTag d;
  const WordTag d32;
  const auto dropped = hn::Lt(hn::LoadU(d32, words), hn::Set(d32, keep.threshold));
  return hn::IfThenZeroElse(hn::RebindMask(d, dropped), hn::Mul(value, hn::Set(d, keep.scale)));
}

// Words of noise that all rows of an example share: `width` of them per example, at `words`, padded so
// that whole vectors may be read.
inline void FillSharedNoise(const int32_t* keys, uint64_t site, int64_t examples, int64_t width,
                            uint32_t* words) {
  const int64_t stride = SharedNoiseStride(width);
  ParallelFor(examples, RowGrain(width), [&](int64_t begin, int64_t end) {
    NoiseWords noise;
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t i = 0; i < width; i += NoiseWords::kBlock) {
        const int64_t count = std::min(NoiseWords::kBlock, width - i);
        std::memcpy(words + b * stride + i, noise.Fill(KeyOf(keys, b), site, i, count),
                    count * sizeof(uint32_t));
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
