// SPDX-License-Identifier: Apache-2.0
// Compares products by AMX with sums in double precision.
#include "kernels/cpu/tile_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/buffer.h"
#include "kernels/bfloat16.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/processor.h"

namespace syntra {
namespace {

std::vector<BFloat16> Random(int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<BFloat16> values(count);
  for (BFloat16& value : values) value = ToBFloat16(normal(random));
  return values;
}

class Product {
 public:
  // Rows of operands and results are `gap` elements longer than the product needs.
  Product(const GemmProblem& problem, int64_t gap) : problem_(problem) {
    problem_.ab = DType::kBF16;
    problem_.a_stride = (problem.transpose_a ? problem.m : problem.k) + gap;
    problem_.b_stride = (problem.transpose_b ? problem.k : problem.n) + gap;
    problem_.c_stride = problem.n + gap;
    std::mt19937 random(1);
    a_ = Random(problem_.a_stride * (problem.transpose_a ? problem.k : problem.m), random);
    b_ = Random(problem_.b_stride * (problem.transpose_b ? problem.n : problem.k), random);
    before_ = Random(problem_.c_stride * problem.m, random);
  }

  void Check() {
    ASSERT_TRUE(TileGemm::Covers(problem_));
    if (problem_.c == DType::kBF16) {
      std::vector<BFloat16> c = before_;
      Run(c.data());
      for (int64_t i = 0; i < std::ssize(c); ++i) CheckValue(i, ToFloat(c[i]));
    } else {
      std::vector<float> c;
      for (const BFloat16 value : before_) c.push_back(ToFloat(value));
      Run(c.data());
      for (int64_t i = 0; i < std::ssize(c); ++i) CheckValue(i, c[i]);
    }
  }

 private:
  void Run(void* c) const {
    const TileGemm gemm(problem_);
    Buffer packed(gemm.packed_bytes(), "packed"), workspace(gemm.workspace_bytes(), "workspace");
    gemm.Pack(b_.data(), packed.data());
    gemm.Run(a_.data(), packed.data(), c, workspace.data());
  }

  void CheckValue(int64_t i, float got) const {
    const GemmProblem& p = problem_;
    const int64_t row = i / p.c_stride, column = i % p.c_stride;
    const double before = ToFloat(before_[i]);
    if (column >= p.n) {
      ASSERT_EQ(got, before) << "row " << row << ", column " << column << " is not of the product";
      return;
    }
    double sum = p.accumulate ? before : 0.0, size = std::fabs(sum);
    for (int64_t k = 0; k < p.k; ++k) {
      const double a = ToFloat(a_[p.transpose_a ? k * p.a_stride + row : row * p.a_stride + k]);
      const double b =
          ToFloat(b_[p.transpose_b ? column * p.b_stride + k : k * p.b_stride + column]);
      sum += p.alpha * a * b;
      size += std::fabs(p.alpha * a * b);
    }
    const double bound = 1e-6 * size + (p.c == DType::kBF16 ? 0x1p-8 * std::fabs(sum) : 0.0);
    ASSERT_NEAR(got, sum, bound) << "row " << row << ", column " << column;
  }

  GemmProblem problem_;
  std::vector<BFloat16> a_, b_, before_;
};

class TileGemmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!AmxMultipliesBFloat16()) GTEST_SKIP() << "this processor has no AMX";
  }
};

TEST_F(TileGemmTest, EqualsSums) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const DType c : {DType::kF32, DType::kBF16}) {
        for (const bool accumulate : {false, true}) {
          SCOPED_TRACE(testing::Message() << transpose_a << transpose_b << NameOf(c) << accumulate);
          Product({.m = 128,
                   .n = 192,
                   .k = 96,
                   .transpose_a = transpose_a,
                   .transpose_b = transpose_b,
                   .c = c,
                   .accumulate = accumulate},
                  16)
              .Check();
        }
      }
    }
  }
}

TEST_F(TileGemmTest, WithAnyNumberOfRows) {
  for (const int64_t m : {1, 15, 16, 17, 31, 33, 114}) {
    SCOPED_TRACE(m);
    Product({.m = m, .n = 64, .k = 32, .accumulate = true}, 0).Check();
    Product({.m = m, .n = 64, .k = 64, .c = DType::kBF16}, 8).Check();
  }
}

// If A is transposed, rows of zeros complete the last block.
TEST_F(TileGemmTest, WithAnyLengthOfTransposedColumns) {
  for (const int64_t k : {2, 30, 34, 114}) {
    SCOPED_TRACE(k);
    Product({.m = 64, .n = 128, .k = k, .transpose_a = true}, 8).Check();
  }
}

TEST_F(TileGemmTest, Scales) {
  Product({.m = 40, .n = 64, .k = 32, .alpha = 0.125f}, 0).Check();
  Product({.m = 40, .n = 64, .k = 32, .alpha = 0.125f, .accumulate = true}, 0).Check();
}

TEST_F(TileGemmTest, LeavesTheRestToTheLibrary) {
  const GemmProblem bf16{.m = 64, .n = 64, .k = 32, .ab = DType::kBF16};
  EXPECT_TRUE(TileGemm::Covers(bf16));
  GemmProblem problem = bf16;
  problem.ab = DType::kF32;
  EXPECT_FALSE(TileGemm::Covers(problem));
  problem = bf16;
  problem.n = 96;
  EXPECT_FALSE(TileGemm::Covers(problem)) << "half a panel";
  problem = bf16;
  problem.k = 48;
  EXPECT_FALSE(TileGemm::Covers(problem)) << "half a block of A's rows";
  problem.transpose_a = true;
  EXPECT_TRUE(TileGemm::Covers(problem));
  problem.m = 48;
  EXPECT_FALSE(TileGemm::Covers(problem)) << "part of a panel of A";
  problem = bf16;
  problem.epilogue = Epilogue::kRelu;
  EXPECT_FALSE(TileGemm::Covers(problem));
}

}  // namespace
}  // namespace syntra
