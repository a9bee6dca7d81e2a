// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al. 2011) for runs of consecutive counters: the words of RandomAt, a
// vector of counters at a time. Included once per instruction set (Highway's foreach_target).
#if defined(SYNTRA_CORE_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_CORE_PHILOX_INL_H_
#undef SYNTRA_CORE_PHILOX_INL_H_
#else
#define SYNTRA_CORE_PHILOX_INL_H_
#endif

#include "core/random.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using WordTag = hn::ScalableTag<uint32_t>;

#if HWY_TARGET == HWY_SCALAR

// Runs of counters under one key.
class PhiloxStream {
 public:
  static constexpr int64_t kWords = 4;  // words that a call of Generate writes

  void SetKey(RandomKey key) { key_ = key; }
  void Generate(uint64_t counter, uint64_t site, uint32_t* words) const {
    const RandomBits bits = RandomAt(key_, counter, site);
    for (int i = 0; i < 4; ++i) words[i] = bits[i];
  }

 private:
  RandomKey key_;
};

#else

// Words are held one to a 64-bit lane: the widening product then leaves its two halves where the
// next round wants them, and the garbage in the upper halves is never read.
using WideTag = hn::Repartition<uint64_t, WordTag>;
using WideVector = hn::Vec<WideTag>;

HWY_INLINE WideVector WideProduct(WideVector a, WideVector b) {
  const WordTag d;
  return hn::MulEven(hn::BitCast(d, a), hn::BitCast(d, b));
}

struct PhiloxState {
  WideVector c0, c1, c2, c3;

  HWY_INLINE PhiloxState(uint64_t counter, uint64_t site) {
    const WideTag d;
    c0 = hn::Add(hn::Set(d, counter), hn::Iota(d, 0));
    c1 = hn::ShiftRight<32>(c0);
    c2 = hn::Set(d, site);
    c3 = hn::Set(d, site >> 32);
  }

  HWY_INLINE void Round(WideVector k0, WideVector k1) {
    const WideTag d;
    const WideVector p0 = WideProduct(c0, hn::Set(d, 0xD2511F53u));
    const WideVector p1 = WideProduct(c2, hn::Set(d, 0xCD9E8D57u));
    c0 = hn::Xor3(hn::ShiftRight<32>(p1), c1, k0);
    c2 = hn::Xor3(hn::ShiftRight<32>(p0), c3, k1);
    c1 = p1;
    c3 = p0;
  }

  HWY_INLINE void Store(uint32_t* words) const {
    const WideTag d;
    const WordTag d32;
    const auto pair = [&](WideVector even, WideVector odd) {
      return hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(odd)), hn::BitCast(d32, even));
    };
    hn::StoreInterleaved2(hn::BitCast(d, pair(c0, c1)), hn::BitCast(d, pair(c2, c3)), d,
                          reinterpret_cast<uint64_t*>(words));
  }
};

// Runs of counters under one key, whose schedule is spread over vectors once.
class PhiloxStream {
 public:
  // Words that a call of Generate writes: of two vectors of counters, so that one's rounds hide the
  // other's latency.
  static constexpr int64_t kWords = 8 * static_cast<int64_t>(hn::MaxLanes(WideTag()));

  HWY_INLINE void SetKey(RandomKey key) {
    if (spread_ && key.low == key_.low && key.high == key_.high) return;
    const WideTag d;
    key_ = key;
    spread_ = true;
    for (int round = 0; round < kRounds; ++round) {
      hn::Store(hn::Set(d, uint64_t{key.low}), d, first_[round]);
      hn::Store(hn::Set(d, uint64_t{key.high}), d, second_[round]);
      key.low += 0x9E3779B9u;
      key.high += 0xBB67AE85u;
    }
  }

  HWY_INLINE void Generate(uint64_t counter, uint64_t site, uint32_t* words) const {
    const WideTag d;
    PhiloxState a(counter, site), b(counter + hn::MaxLanes(d), site);
    HWY_UNROLL(10)
    for (int round = 0; round < kRounds; ++round) {
      const WideVector k0 = hn::Load(d, first_[round]), k1 = hn::Load(d, second_[round]);
      a.Round(k0, k1);
      b.Round(k0, k1);
    }
    a.Store(words);
    b.Store(words + kWords / 2);
  }

 private:
  static constexpr int kRounds = 10;

  RandomKey key_;
  bool spread_ = false;
  alignas(64) uint64_t first_[kRounds][hn::MaxLanes(WideTag())];
  alignas(64) uint64_t second_[kRounds][hn::MaxLanes(WideTag())];
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
