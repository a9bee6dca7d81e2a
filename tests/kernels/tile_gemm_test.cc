// SPDX-License-Identifier: Apache-2.0
// Compares products by AMX with sums in double precision.
#include "kernels/cpu/tile_gemm.h"

#include "core/buffer.h"
#include "kernels/cpu/processor.h"
#include "tests/kernels/gemm_trial.h"

namespace syntra {
namespace {

// Rows of operands and results are `gap` elements longer than the product needs.
void CheckTiles(GemmProblem problem, int64_t gap) {
  problem.ab = DType::kBF16;
  const GemmTrial trial(problem, {gap, gap, gap});
  ASSERT_TRUE(TileGemm::Covers(trial.problem()));
  trial.Check([&](const void* a, const void* b, void* c) {
    const TileGemm gemm(trial.problem());
    Buffer packed(gemm.packed_bytes(), "packed"), workspace(gemm.workspace_bytes(), "workspace");
    gemm.Pack(b, packed.data());
    gemm.Run(a, packed.data(), c, workspace.data());
  });
}

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
          CheckTiles({.m = 128,
                      .n = 192,
                      .k = 96,
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
