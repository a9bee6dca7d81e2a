// SPDX-License-Identifier: Apache-2.0
// Compares products of transposed matrices with sums in double precision.
#include "kernels/cpu/transposed_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

// A matrix of which a product uses the first columns of each part.
struct Matrix {
  std::vector<float> values;  // as they are stored
  std::vector<BFloat16> rounded;
  int64_t stride;

  Matrix(int64_t rows, int64_t stride, DType stored, std::mt19937& random)
      : values(rows * stride), stride(stride) {
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random);
    if (stored != DType::kBF16) return;
    for (float& value : values) value = ToFloat(rounded.emplace_back(ToBFloat16(value)));
  }
  const void* at(int64_t column) const {
    if (rounded.empty()) return values.data() + column;
    return rounded.data() + column;
  }
  // As the product reads it.
  double value(int64_t row, int64_t column, DType type) const {
    const float stored = values[row * stride + column];
    return type == DType::kBF16 ? ToFloat(ToBFloat16(stored)) : stored;
  }
};

struct Case {
  int64_t m, k;
  std::vector<int64_t> parts;
  DType type, stored;
  bool accumulate;
};

class Product {
 public:
  explicit Product(const Case& c)
      : case_(c),
        columns_(std::accumulate(c.parts.begin(), c.parts.end(), int64_t{0})),
        a_(c.k, c.m + 8, c.stored, random_),
        b_(c.k, columns_ + 24, c.stored, random_) {}

  bool covered() const { return TransposedGemm::Covers(Problem(), A(), B()); }

  // The parts one after the other.
  std::vector<float> Run(int threads) {
    SetThreadCount(threads);
    const TransposedGemm gemm(Problem(), A(), B());
    std::vector<float> c(case_.m * columns_, kBefore);
    std::vector<const void*> right;
    std::vector<void*> results;
    int64_t column = 0;
    for (const int64_t part : case_.parts) {
      right.push_back(b_.at(column));
      results.push_back(c.data() + case_.m * column);
      column += part;
    }
    Buffer workspace(gemm.workspace_bytes(), "workspace");
    gemm.Run(a_.at(0), right, results, workspace.data());
    return c;
  }

  void Check(const std::vector<float>& c) const {
    int64_t before = 0;
    for (const int64_t part : case_.parts) {
      for (int64_t i = 0; i < case_.m; ++i) {
        for (int64_t j = 0; j < part; ++j) {
          CheckSum(i, before + j, c[case_.m * before + i * part + j]);
        }
      }
      before += part;
    }
  }

 private:
  static constexpr float kBefore = 0.75f;

  GemmProblem Problem() const {
    return {.m = case_.m,
            .n = columns_,
            .k = case_.k,
            .transpose_a = true,
            .ab = case_.type,
            .accumulate = case_.accumulate};
  }
  TransposedGemm::Operand A() const { return {case_.stored, {case_.m}, a_.stride}; }
  TransposedGemm::Operand B() const { return {case_.stored, case_.parts, b_.stride}; }

  void CheckSum(int64_t i, int64_t j, float got) const {
    double sum = case_.accumulate ? kBefore : 0.0, size = std::fabs(sum);
    for (int64_t row = 0; row < case_.k; ++row) {
      const double term = a_.value(row, i, case_.type) * b_.value(row, j, case_.type);
      sum += term;
      size += std::fabs(term);
    }
    ASSERT_NEAR(got, sum, 1e-6 * size) << "row " << i << ", column " << j;
  }

  Case case_;
  int64_t columns_;
  std::mt19937 random_{1};
  Matrix a_, b_;
};

void CheckCase(const Case& c) {
  SCOPED_TRACE(testing::Message() << c.m << " x " << testing::PrintToString(c.parts) << " x " << c.k
                                  << " of " << NameOf(c.stored) << " as " << NameOf(c.type));
  Product product(c);
  if (!product.covered()) GTEST_SKIP() << "this processor leaves the product to the library";
  const int threads = ThreadCount();
  const std::vector<float> once = product.Run(1);
  product.Check(once);
  for (const int count : {2, 3, 9}) EXPECT_EQ(product.Run(count), once) << count << " threads";
  SetThreadCount(threads);
}

// Either operand is the wider one; tails of blocks; B in parts; added to what was there.
TEST(TransposedGemm, EqualsSums) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    CheckCase({64, 2, {64}, type, type, false});
    CheckCase({64, 456, {192}, type, type, true});
    CheckCase({192, 114, {64}, type, type, false});
    CheckCase({128, 1030, {128, 64, 128}, type, type, true});
    CheckCase({384, 130, {64, 128}, type, type, false});
  }
}

// As many rows as are multiplied at once, and more; and panels.
TEST(TransposedGemm, SplitsWhatIsLarge) {
  for (const int64_t rows : {512, 1100}) {
    CheckCase({64, rows, {64}, DType::kF32, DType::kF32, true});
    CheckCase({64, 2 * rows, {64}, DType::kBF16, DType::kBF16, false});
  }
  for (const DType type : {DType::kF32, DType::kBF16}) {
    CheckCase({640, 20, {512, 192}, type, type, false});
    CheckCase({704, 20, {640}, type, type, true});
  }
}

TEST(TransposedGemm, RoundsWhatIsStoredInF32) {
  CheckCase({64, 96, {128}, DType::kBF16, DType::kF32, false});
}

TEST(TransposedGemm, LeavesTheRestToTheLibrary) {
  const auto covers = [](GemmProblem problem, int64_t m, int64_t n) {
    return TransposedGemm::Covers(problem, {problem.ab, {m}, m}, {problem.ab, {n}, n});
  };
  const GemmProblem f32{.m = 64, .n = 64, .k = 32, .transpose_a = true};
  GemmProblem problem = f32;
  EXPECT_FALSE(covers(f32, 72, 64));
  EXPECT_FALSE(covers(f32, 64, 96));
  problem.alpha = 2.0f;
  EXPECT_FALSE(covers(problem, 64, 64));
  problem = f32;
  problem.transpose_a = false;
  EXPECT_FALSE(covers(problem, 64, 64));
  problem = f32;
  problem.ab = problem.c = DType::kBF16;
  EXPECT_FALSE(covers(problem, 64, 64)) << "results in bf16";
  problem.c = DType::kF32;
  problem.k = 33;
  EXPECT_FALSE(covers(problem, 64, 64)) << "half a pair";
}

}  // namespace
}  // namespace syntra
