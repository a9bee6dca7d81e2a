// SPDX-License-Identifier: Apache-2.0
// Compares products of panels in registers with sums in double precision.
#include "kernels/cpu/panel_gemm.h"

#include "core/buffer.h"
#include "kernels/cpu/processor.h"
#include "tests/kernels/gemm_trial.h"

namespace syntra {
namespace {

// Rows of operands and results are `gap` elements longer than the product needs.
void CheckPanels(const GemmProblem& problem, int64_t gap) {
  SCOPED_TRACE(testing::Message() << problem.m << " x " << problem.n << " x " << problem.k
                                  << ", transposed " << problem.transpose_a << problem.transpose_b
                                  << ", " << NameOf(problem.ab) << " to " << NameOf(problem.c)
                                  << ", adding " << problem.accumulate << ", gap " << gap);
  const GemmTrial trial(problem, {gap, gap, gap});
  ASSERT_TRUE(PanelGemm::Covers(trial.problem()));
  trial.Check([&](const void* a, const void* b, void* c) {
    const PanelGemm gemm(trial.problem());
    Buffer workspace(gemm.workspace_bytes(), "workspace");
    gemm.Run(a, b, c, workspace.data());
  });
}

// The types of the operands and of C.
class PanelGemmTest : public testing::TestWithParam<std::pair<DType, DType>> {
 protected:
  void SetUp() override {
    if (!kProcessor.avx512) GTEST_SKIP() << "this processor has no AVX-512";
    if (GetParam().first == DType::kBF16 && !kProcessor.avx512_bf16) {
      GTEST_SKIP() << "this processor has no AVX512_BF16";
    }
  }

  static GemmProblem Problem(int64_t m, int64_t n, int64_t k) {
    return {.m = m, .n = n, .k = k, .ab = GetParam().first, .c = GetParam().second};
  }
};

TEST_P(PanelGemmTest, EqualsSums) {
  for (int choice = 0; choice < 16; ++choice) {
    const auto bit = [&](int i) { return (choice >> i & 1) != 0; };
    GemmProblem problem = Problem(128, 192, 96);
    problem.transpose_a = bit(0);
    problem.transpose_b = bit(1);
    problem.accumulate = bit(2);
    CheckPanels(problem, bit(3) ? 6 : 0);
  }
}

TEST_P(PanelGemmTest, WithAnyNumberOfRows) {
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 11, 12, 114}) CheckPanels(Problem(m, 64, 34), 0);
}

// More words of k than one panel holds; a C of bf16 would have to keep partial sums.
TEST_P(PanelGemmTest, AddsLongSumsInParts) {
  if (GetParam().second == DType::kBF16) GTEST_SKIP() << "left to the library";
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      GemmProblem problem = Problem(64, 64, 2112);
      problem.transpose_a = transpose_a;
      problem.transpose_b = transpose_b;
      CheckPanels(problem, 2);
      problem.accumulate = true;
      CheckPanels(problem, 0);
    }
  }
}

TEST_P(PanelGemmTest, Scales) {
  GemmProblem problem = Problem(40, 64, 32);
  problem.alpha = 0.125f;
  CheckPanels(problem, 0);
  problem.accumulate = true;
  CheckPanels(problem, 0);
}

TEST_P(PanelGemmTest, LeavesTheRestToTheLibrary) {
  const auto covers = [](int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
    GemmProblem problem = Problem(m, n, k);
    problem.transpose_a = transpose_a;
    problem.transpose_b = transpose_b;
    return PanelGemm::Covers(problem);
  };
  EXPECT_TRUE(covers(5, 64, 34, false, false));
  EXPECT_FALSE(covers(5, 96, 34, false, false)) << "half a panel of B";
  EXPECT_FALSE(covers(5, 64, 34, false, true)) << "part of a block of a transposed B";
  EXPECT_FALSE(covers(96, 64, 34, true, false)) << "half a panel of a transposed A";
  const bool f32 = GetParam().first == DType::kF32;
  EXPECT_EQ(covers(512, 64, 64, true, false), !f32) << "a tall transposed A";
  EXPECT_EQ(covers(5, 64, 33, false, false), f32) << "half a word";
  EXPECT_EQ(covers(5, 64, 1056, false, false), GetParam().second == DType::kF32) << "a long sum";
  GemmProblem relu = Problem(5, 64, 34);
  relu.epilogue = Epilogue::kRelu;
  EXPECT_FALSE(PanelGemm::Covers(relu));
}

INSTANTIATE_TEST_SUITE_P(Types, PanelGemmTest,
                         testing::Values(std::pair(DType::kF32, DType::kF32),
                                         std::pair(DType::kBF16, DType::kF32),
                                         std::pair(DType::kBF16, DType::kBF16)),
                         [](const auto& types) {
                           return std::string(NameOf(types.param.first)) + "_to_" +
                                  std::string(NameOf(types.param.second));
                         });

}  // namespace
}  // namespace syntra
