// SPDX-License-Identifier: Apache-2.0
// Products with random operands, compared with sums in double precision.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "kernels/bfloat16.h"
#include "kernels/gemm_problem.h"

namespace syntra {

class GemmTrial {
 public:
  // How many elements rows of the stored operands are longer than the product needs.
  struct Gaps {
    int64_t a = 0, b = 0, c = 0;
  };
  GemmTrial(const GemmProblem& problem, const Gaps& gaps) : problem_(problem) {
    problem_.a_stride = (problem.transpose_a ? problem.m : problem.k) + gaps.a;
    problem_.b_stride = (problem.transpose_b ? problem.k : problem.n) + gaps.b;
    problem_.c_stride = problem.n + gaps.c;
    std::mt19937 random(1);
    a_ = Random(problem_.a_stride * (problem.transpose_a ? problem.k : problem.m), random);
    b_ = Random(problem_.b_stride * (problem.transpose_b ? problem.n : problem.k), random);
    before_ = Random(problem_.c_stride * problem.m, random);
  }

  const GemmProblem& problem() const { return problem_; }

  // `multiply` gets the stored operands. What lies between C's rows must stay as it is.
  using Multiply = std::function<void(const void* a, const void* b, void* c)>;
  void Check(const Multiply& multiply) const {
    WithElement(problem_.ab, [&](auto ab) {
      WithElement(problem_.c, [&](auto result) {
        const auto a = Converted<decltype(ab)>(a_), b = Converted<decltype(ab)>(b_);
        auto c = Converted<decltype(result)>(before_);
        multiply(a.data(), b.data(), c.data());
        for (int64_t i = 0; i < std::ssize(c); ++i) CheckValue(i, Number(c[i]));
      });
    });
  }

 private:
  // All values are bf16, and so are exact in either type.
  static std::vector<float> Random(int64_t count, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = ToFloat(ToBFloat16(normal(random)));
    return values;
  }

  static void WithElement(DType dtype, const auto& body) {
    if (dtype == DType::kBF16) {
      body(BFloat16{});
    } else {
      body(float{});
    }
  }

  template <typename T>
  static std::vector<T> Converted(const std::vector<float>& values) {
    std::vector<T> converted;
    for (const float value : values) {
      if constexpr (std::is_same_v<T, BFloat16>) {
        converted.push_back(ToBFloat16(value));
      } else {
        converted.push_back(value);
      }
    }
    return converted;
  }

  static float Number(float value) { return value; }
  static float Number(BFloat16 value) { return ToFloat(value); }

  void CheckValue(int64_t i, float got) const {
    const GemmProblem& p = problem_;
    const int64_t row = i / p.c_stride, column = i % p.c_stride;
    const double before = before_[i];
    if (column >= p.n) {
      ASSERT_EQ(got, before) << "row " << row << ", column " << column << " is not of the product";
      return;
    }
    double sum = p.accumulate ? before : 0.0, size = std::fabs(sum);
    for (int64_t k = 0; k < p.k; ++k) {
      const double a = a_[p.transpose_a ? k * p.a_stride + row : row * p.a_stride + k];
      const double b = b_[p.transpose_b ? column * p.b_stride + k : k * p.b_stride + column];
      sum += p.alpha * a * b;
      size += std::fabs(p.alpha * a * b);
    }
    if (p.epilogue == Epilogue::kRelu) sum = std::max(sum, 0.0);
    const double bound = 1e-6 * size + (p.c == DType::kBF16 ? 0x1p-8 * std::fabs(sum) : 0.0);
    ASSERT_NEAR(got, sum, bound) << "row " << row << ", column " << column;
  }

  GemmProblem problem_;
  std::vector<float> a_, b_, before_;
};

}  // namespace syntra
