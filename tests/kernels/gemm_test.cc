// SPDX-License-Identifier: Apache-2.0
// Compares products as kernels get them, by oneDNN or by our own loops, with sums in double
// precision: small ones of every shape, also vectors, whose operands may be parts of larger
// matrices.
#include "kernels/cpu/gemm.h"

#include "core/buffer.h"
#include "kernels/cpu/processor.h"
#include "tests/kernels/gemm_trial.h"

namespace syntra {
namespace {

void Check(const GemmProblem& problem, const GemmTrial::Gaps& gaps) {
  SCOPED_TRACE(testing::Message() << problem.m << " x " << problem.n << " x " << problem.k
                                  << ", transposed " << problem.transpose_a << problem.transpose_b
                                  << ", " << NameOf(problem.ab) << " to " << NameOf(problem.c)
                                  << ", adding " << problem.accumulate << ", epilogue "
                                  << static_cast<int>(problem.epilogue) << ", gaps " << gaps.a
                                  << " " << gaps.b << " " << gaps.c);
  const GemmTrial trial(problem, gaps);
  trial.Check([&](const void* a, const void* b, void* c) {
    const Gemm gemm(trial.problem(), GemmThreads::kCaller);
    Buffer workspace(gemm.workspace_bytes(), "workspace");
    gemm.Run(a, b, c, workspace.data());
  });
}

// The types of the operands and of C.
void CheckShapes(DType ab, DType c) {
  for (const int64_t m : {1, 2, 24}) {
    for (const int64_t n : {1, 3, 17}) {
      for (const int64_t k : {1, 4, 33}) {
        for (int choice = 0; choice < 64; ++choice) {
          const auto bit = [&](int i) { return (choice >> i & 1) != 0; };
          GemmProblem problem{.m = m, .n = n, .k = k, .transpose_a = bit(0), .transpose_b = bit(1)};
          problem.ab = ab;
          problem.c = c;
          problem.accumulate = bit(2);
          Check(problem, {bit(3) ? 8 : 0, bit(4) ? 5 : 0, bit(5) ? 2 : 0});
        }
      }
    }
  }
}

TEST(Gemm, EqualsSums) { CheckShapes(DType::kF32, DType::kF32); }

TEST(Gemm, OfBFloat16EqualsSums) {
  if (!kProcessor.avx512) GTEST_SKIP() << "oneDNN has no products of bf16 for this processor";
  CheckShapes(DType::kBF16, DType::kF32);
  CheckShapes(DType::kBF16, DType::kBF16);
}

TEST(Gemm, ScalesAndClips) {
  for (const int64_t n : {1, 17}) {
    for (const int64_t gap : {0, 2}) {
      Check({.m = 24, .n = n, .k = 33, .alpha = 0.125f}, {.c = gap});
    }
    Check({.m = 24, .n = n, .k = 33, .epilogue = Epilogue::kRelu}, {});
  }
}

}  // namespace
}  // namespace syntra
