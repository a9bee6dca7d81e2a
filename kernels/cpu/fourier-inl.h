// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of as many sequences at once as a vector has lanes. Included once per
// instruction set.
#if defined(SYNTRA_KERNELS_CPU_FOURIER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNTRA_KERNELS_CPU_FOURIER_INL_H_
#undef SYNTRA_KERNELS_CPU_FOURIER_INL_H_
#else
#define SYNTRA_KERNELS_CPU_FOURIER_INL_H_
#endif

#include <algorithm>
#include <utility>

#include "kernels/cpu/fourier.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syntra {
namespace HWY_NAMESPACE {

inline int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

struct ComplexVector {
  FloatVector re, im;
};

HWY_INLINE ComplexVector Sum(ComplexVector a, ComplexVector b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
HWY_INLINE ComplexVector Difference(ComplexVector a, ComplexVector b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
HWY_INLINE ComplexVector Product(ComplexVector a, ComplexVector b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
}
// a times the conjugate of b.
HWY_INLINE ComplexVector ConjugateProduct(ComplexVector a, ComplexVector b) {
  return {hn::MulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::NegMulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}

// Complex numbers of LaneCount() sequences: element n of all of them is a vector.
struct ComplexRows {
  float *re, *im;

  // In memory of 2 * count floats.
  static ComplexRows Of(void* memory, int64_t count) {
    auto* re = static_cast<float*>(memory);
    return {re, re + count};
  }

  HWY_INLINE ComplexVector Load(int64_t n) const {
    const FloatTag d;
    return {hn::LoadU(d, re + n * LaneCount()), hn::LoadU(d, im + n * LaneCount())};
  }
  HWY_INLINE void Store(ComplexVector value, int64_t n) const {
    const FloatTag d;
    hn::StoreU(value.re, d, re + n * LaneCount());
    hn::StoreU(value.im, d, im + n * LaneCount());
  }
  // Transforming it gives the inverse transform, times the length.
  ComplexRows Swapped() const { return {im, re}; }
};

// Two sequences of real numbers a lane, transformed together as a + i b: the transforms of both,
// which are symmetric, at one frequency.
struct RealPair {
  ComplexVector a, b;
};

// Separates the two transforms, given the transform of a + i b at a frequency and at the opposite
// one.
HWY_INLINE RealPair Separate(ComplexVector at, ComplexVector opposite) {
  const FloatVector half = hn::Set(FloatTag(), 0.5f);
  return {{hn::Mul(half, hn::Add(at.re, opposite.re)), hn::Mul(half, hn::Sub(at.im, opposite.im))},
          {hn::Mul(half, hn::Add(at.im, opposite.im)), hn::Mul(half, hn::Sub(opposite.re, at.re))}};
}

// The transform of a + i b at the frequency of the pair, and at the opposite one.
HWY_INLINE ComplexVector Together(RealPair pair) {
  return {hn::Sub(pair.a.re, pair.b.im), hn::Add(pair.a.im, pair.b.re)};
}
HWY_INLINE ComplexVector TogetherOpposite(RealPair pair) {
  return {hn::Add(pair.a.re, pair.b.im), hn::Sub(pair.b.re, pair.a.im)};
}

// The passes of a transform; each moves the data from one array to another.
class FourierPasses {
 public:
  explicit FourierPasses(const FourierTables& tables)
      : plan_(tables.plan),
        cosines_(tables.roots.data()),
        sines_(tables.roots.data() + tables.plan.length) {}

  void Run(ComplexRows& data, ComplexRows& spare) const {
    int64_t before = 1;
    for (int pass = 0; pass < plan_.passes; ++pass) {
      const int64_t radix = plan_.radix[pass];
      if (radix == 4) {
        OfFour(before, data, spare);
      } else if (radix == 2) {
        OfTwo(before, data, spare);
      } else {
        Of(radix, before, data, spare);
      }
      std::swap(data, spare);
      before *= radix;
    }
  }

 private:
  HWY_INLINE ComplexVector Root(int64_t power) const {
    const FloatTag d;
    return {hn::Set(d, cosines_[power]), hn::Set(d, sines_[power])};
  }

  void OfFour(int64_t before, ComplexRows from, ComplexRows to) const {
    const int64_t quarter = plan_.length / 4, step = quarter / before;
    for (int64_t k = 0; k < before; ++k) {
      const ComplexVector one = Root(k * step), two = Root(2 * k * step),
                          three = Root(3 * k * step);
      for (int64_t i = k; i < quarter; i += before) {
        const ComplexVector a = from.Load(i), b = Product(from.Load(i + quarter), one);
        const ComplexVector c = Product(from.Load(i + 2 * quarter), two);
        const ComplexVector d = Product(from.Load(i + 3 * quarter), three);
        const ComplexVector even = Sum(a, c), odd = Difference(a, c);
        const ComplexVector sum = Sum(b, d), rest = Difference(b, d);
        const int64_t at = 4 * i - 3 * k;
        to.Store(Sum(even, sum), at);
        to.Store({hn::Add(odd.re, rest.im), hn::Sub(odd.im, rest.re)}, at + before);
        to.Store(Difference(even, sum), at + 2 * before);
        to.Store({hn::Sub(odd.re, rest.im), hn::Add(odd.im, rest.re)}, at + 3 * before);
      }
    }
  }

  void OfTwo(int64_t before, ComplexRows from, ComplexRows to) const {
    const int64_t half = plan_.length / 2, step = half / before;
    for (int64_t k = 0; k < before; ++k) {
      const ComplexVector root = Root(k * step);
      for (int64_t i = k; i < half; i += before) {
        const ComplexVector a = from.Load(i), b = Product(from.Load(i + half), root);
        to.Store(Sum(a, b), 2 * i - k);
        to.Store(Difference(a, b), 2 * i - k + before);
      }
    }
  }

  // Any radix, by its definition.
  void Of(int64_t radix, int64_t before, ComplexRows from, ComplexRows to) const {
    const int64_t length = plan_.length, part = length / radix, step = part / before;
    for (int64_t i = 0; i < part; ++i) {
      const int64_t k = i % before;
      for (int64_t q = 0; q < radix; ++q) {
        const int64_t stride = (k + q * before) * step;
        ComplexVector sum = from.Load(i);
        for (int64_t s = 1, power = stride; s < radix; ++s, power = (power + stride) % length) {
          sum = Sum(sum, Product(from.Load(i + s * part), Root(power)));
        }
        to.Store(sum, (i - k) * radix + k + q * before);
      }
    }
  }

  const FourierPlan& plan_;
  const float *cosines_, *sines_;
};

// Transforms the data. The two arrays may change places.
inline void FourierTransform(const FourierTables& tables, ComplexRows& data, ComplexRows& spare) {
  FourierPasses(tables).Run(data, spare);
}

// The inverse transform, times the length.
inline void InverseFourierTransform(const FourierTables& tables, ComplexRows& data,
                                    ComplexRows& spare) {
  data = data.Swapped();
  spare = spare.Swapped();
  FourierTransform(tables, data, spare);
  data = data.Swapped();
  spare = spare.Swapped();
}

// Memory for arrays of complex numbers, one after the other.
class ComplexArrays {
 public:
  ComplexArrays(int64_t length, void* memory)
      : count_(CountFor(length)), next_(static_cast<float*>(memory)) {}

  static size_t BytesOf(int64_t length, int64_t arrays) {
    return sizeof(float) * 2 * CountFor(length) * arrays;
  }
  ComplexRows Next() {
    float* memory = next_;
    next_ += 2 * count_;
    return ComplexRows::Of(memory, count_);
  }

 private:
  // A little more than the numbers take, so that the same element of all arrays does not lie in the
  // same set of a cache.
  static int64_t CountFor(int64_t length) { return (length + kApart) * LaneCount(); }
  static constexpr int64_t kApart = 3;

  int64_t count_;
  float* next_;
};

// Sets elements [begin, end) to zero.
inline void Clear(ComplexRows rows, int64_t begin, int64_t end) {
  std::fill(rows.re + begin * LaneCount(), rows.re + end * LaneCount(), 0.0f);
  std::fill(rows.im + begin * LaneCount(), rows.im + end * LaneCount(), 0.0f);
}

// Two vectors of neighbouring columns of a matrix, of which the last may not be whole: the real and
// imaginary parts of a pair that is transformed together.
class ColumnPair {
 public:
  static int64_t CountFor(int64_t columns) {
    return (columns + 2 * LaneCount() - 1) / (2 * LaneCount());
  }

  ColumnPair(int64_t columns, int64_t index)
      : width_(columns),
        first_(index * 2 * LaneCount()),
        a_(std::clamp<int64_t>(columns - first_, 0, LaneCount())),
        b_(std::clamp<int64_t>(columns - first_ - LaneCount(), 0, LaneCount())) {}

  template <typename T>
  ComplexVector Load(const T* matrix, int64_t row) const {
    const T* at = matrix + row * width_ + first_;
    return {LoadSome(at, a_), LoadSome(at + LaneCount(), b_)};
  }

  template <typename T>
  void Store(ComplexVector value, T* matrix, int64_t row, bool accumulate) const {
    T* at = matrix + row * width_ + first_;
    StoreSome(value.re, at, a_, accumulate);
    StoreSome(value.im, at + LaneCount(), b_, accumulate);
  }

  // Calls visit(column, its numbers in `rows`, LaneCount() apart) for each column.
  template <typename Visit>
  void ForEachColumn(ComplexRows rows, const Visit& visit) const {
    for (int64_t i = 0; i < a_; ++i) visit(first_ + i, rows.re + i);
    for (int64_t i = 0; i < b_; ++i) visit(first_ + LaneCount() + i, rows.im + i);
  }

 private:
  template <typename T>
  static HWY_INLINE FloatVector LoadSome(const T* from, int64_t count) {
    if (count >= LaneCount()) return HWY_NAMESPACE::Load(from, Whole());
    if (count == 0) return hn::Zero(FloatTag());
    return HWY_NAMESPACE::Load(from, Part{static_cast<size_t>(count)});
  }
  template <typename T>
  static HWY_INLINE void StoreSome(FloatVector value, T* to, int64_t count, bool accumulate) {
    if (count >= LaneCount()) {
      StoreResult(value, to, Whole(), accumulate);
    } else if (count > 0) {
      StoreResult(value, to, Part{static_cast<size_t>(count)}, accumulate);
    }
  }

  int64_t width_, first_, a_, b_;
};

}  // namespace HWY_NAMESPACE
}  // namespace syntra
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
