// SPDX-License-Identifier: Apache-2.0
// Compares products by AMX with sums in double precision.
#include "kernels/cpu/tile_gemm.h"

#include <cstring>
#include <random>

#include "core/buffer.h"
#include "core/thread.h"
#include "kernels/bit_mask.h"
#include "kernels/cpu/bit_mask.h"
#include "kernels/cpu/processor.h"
#include "tests/kernels/gemm_trial.h"

namespace syntra {
namespace {

// Packs B and multiplies.
void Multiply(const GemmProblem& problem, int threads, const void* a, const void* b, void* c,
              void* mask = nullptr) {
  const TileGemm gemm(problem, threads);
  Buffer packed(gemm.packed_bytes(), "packed"), workspace(gemm.workspace_bytes(), "workspace");
  gemm.Pack(b, packed.data());
  gemm.Run(a, packed.data(), c, workspace.data(), mask);
}

// Rows of operands and results are `gap` elements longer than the product needs.
void CheckTiles(GemmProblem problem, int64_t gap) {
  problem.ab = DType::kBF16;
  const GemmTrial trial(problem, {gap, gap, gap});
  ASSERT_TRUE(TileGemm::Covers(trial.problem()));
  trial.Check([&](const void* a, const void* b, void* c) {
    Multiply(trial.problem(), ThreadCount(), a, b, c);
  });
}

class TileGemmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!AmxMultipliesBFloat16()) GTEST_SKIP() << "this processor has no AMX";
  }
};

// Also over more than the words after which sums are no longer stored as they are.
TEST_F(TileGemmTest, EqualsSums) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const DType c : {DType::kF32, DType::kBF16}) {
        for (const bool accumulate : {false, true}) {
          for (const int64_t k : {96, 288}) {
            SCOPED_TRACE(testing::Message()
                         << transpose_a << transpose_b << NameOf(c) << accumulate << ' ' << k);
            CheckTiles({.m = 128,
                        .n = 192,
                        .k = k,
                        .transpose_a = transpose_a,
                        .transpose_b = transpose_b,
                        .c = c,
                        .accumulate = accumulate},
                       16);
          }
        }
      }
    }
  }
}

TEST_F(TileGemmTest, WithAnyNumberOfRows) {
  for (const int64_t m : {1, 15, 16, 17, 31, 33, 114}) {
    SCOPED_TRACE(m);
    CheckTiles({.m = m, .n = 64, .k = 32, .accumulate = true}, 0);
    CheckTiles({.m = m, .n = 64, .k = 64, .c = DType::kBF16}, 8);
  }
}

// If A is transposed, rows of zeros complete the last block.
TEST_F(TileGemmTest, WithAnyLengthOfTransposedColumns) {
  for (const int64_t k : {2, 30, 34, 114}) {
    SCOPED_TRACE(k);
    CheckTiles({.m = 64, .n = 128, .k = k, .transpose_a = true}, 8);
  }
}

TEST_F(TileGemmTest, Scales) {
  CheckTiles({.m = 40, .n = 64, .k = 32, .alpha = 0.125f}, 0);
  CheckTiles({.m = 40, .n = 64, .k = 32, .alpha = 0.125f, .accumulate = true}, 0);
}

// Operands whose sums are exact.
struct WholeNumbers {
  std::vector<BFloat16> a, b;

  explicit WholeNumbers(const GemmProblem& p) : a(p.m * p.k), b(p.k * p.n) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> small(-3, 3);
    for (auto* matrix : {&a, &b}) {
      for (BFloat16& value : *matrix) value = ToBFloat16(static_cast<float>(small(random)));
    }
  }
};

TEST_F(TileGemmTest, DoesNotDependOnTheNumberOfThreads) {
  const GemmProblem problem{.m = 300, .n = 1024, .k = 1088, .ab = DType::kBF16};
  const WholeNumbers numbers(problem);
  std::vector<float> expected(problem.m * problem.n), c(expected.size());
  Multiply(problem, 1, numbers.a.data(), numbers.b.data(), expected.data());
  for (const int threads : {2, 3, 64}) {
    Multiply(problem, threads, numbers.a.data(), numbers.b.data(), c.data());
    EXPECT_EQ(c, expected) << threads << " threads";
  }
}

// Epilogues are those of passes of their own, bit by bit, for numbers, zeros, infinity and NaN.
TEST_F(TileGemmTest, EpiloguesEqualPasses) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(NameOf(type));
    GemmProblem problem{.m = 45, .n = 128, .k = 32, .ab = DType::kBF16, .c = type};
    WholeNumbers numbers(problem);
    const uint16_t special[] = {0x7F80, 0xFF80, 0x7FC0, 0xFFC0};
    for (int64_t i = 0; i < 4; ++i) std::memcpy(&numbers.a[i * 2 * problem.k], &special[i], 2);
    const TensorType matrix{type, {problem.m, problem.n}};
    std::vector<std::byte> expected(matrix.bytes()), c(matrix.bytes());
    std::vector<std::byte> expected_mask(problem.m * MaskStride(problem.n)), mask(expected_mask);
    const auto multiply = [&](std::vector<std::byte>& result, void* bits) {
      Multiply(problem, 1, numbers.a.data(), numbers.b.data(), result.data(), bits);
    };
    multiply(expected, nullptr);
    const std::vector<std::byte> sums = expected;
    Rectify(matrix, expected.data(), expected_mask.data());
    problem.epilogue = Epilogue::kReluMask;
    multiply(c, mask.data());
    EXPECT_EQ(c, expected);
    EXPECT_EQ(mask, expected_mask);
    problem.epilogue = Epilogue::kRelu;
    multiply(c, nullptr);
    EXPECT_EQ(c, expected);
    expected = sums;
    ApplyMask(matrix, mask.data(), expected.data());
    problem.epilogue = Epilogue::kMask;
    multiply(c, mask.data());
    EXPECT_EQ(c, expected);
  }
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
  EXPECT_FALSE(TileGemm::Covers(problem)) << "rows of masks with padding";
  problem = bf16;
  problem.k = 8192;
  EXPECT_TRUE(TileGemm::CoversShared(problem));
  problem.k = 8224;
  EXPECT_FALSE(TileGemm::CoversShared(problem)) << "panels of more than half a cache";
}

}  // namespace
}  // namespace syntra
