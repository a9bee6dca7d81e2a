// SPDX-License-Identifier: Apache-2.0
// The FLOPs that ops report: a run's MFU and what `plan` predicts are computed from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/kernels/trials.h"

namespace syntra {
namespace {

struct Counted {
  SweepCase sweep;
  double flops;
};

// Ops of other arithmetic than products, counted by hand.
const Counted kCounted[] = {
    // 2 examples, 2 heads of 4 columns, 6 queries and keys: each pair's score, and its part of y.
    {{"attention", "dot_f32"}, 2.0 * (2 * 2) * (6 * 6) * (4 + 4)},
    {{"attention", "dot_causal_f32"}, 2.0 * (2 * 2) * (6 * 7 / 2) * (4 + 4)},
    {{"attention", "window_f32"}, 2.0 * (2 * 2) * (6 + 2 * 5) * (4 + 4)},
    {{"attention", "random_f32"}, 2.0 * (2 * 2) * (6 * 6) * 4},
    {{"attention", "dense_f32"}, 2.0 * (2 * 2) * (6 * 6) * (3 + 4)},
    {{"attention", "factorized_f32"}, 2.0 * (2 * 2) * (6 * 6) * (1 + 4)},
    // The gradients of the weights, of queries, keys and values.
    {{"attention_grad", "of_dot_f32"}, 2.0 * (2 * 2) * (6 * 6) * (4 * 4)},
    // Five taps at every position, also where they reach beyond the ends.
    {{"depthwise_conv", "centred"}, 2.0 * (2 * 7 * 57) * 5},
    {{"depthwise_conv_grad", "centred"}, 2 * 2.0 * (2 * 7 * 57) * 5},
    // 5 n log2(n) for a transform of complex numbers, half of it for real ones.
    {{"fourier_transform", "powers_of_two"}, 2 * (5.0 * 32 * 5 * 16 + 5.0 * 16 * 4 * 32) / 2},
    {{"linear_argmax", "f32"}, 2.0 * 3 * 19 * 41},
    {{"linear_cross_entropy", "f32"}, 2.0 * (2 * 3) * 19 * 13},
    {{"linear_log_probability", "f32"}, 2.0 * (2 * 3) * 19 * 13},
    // The logits, and two gradients.
    {{"linear_cross_entropy_grad", "f32"}, 3 * 2.0 * (2 * 3) * 19 * 13},
};

TEST(Flops, AreWhatWasCounted) {
  for (const auto& [sweep, flops] : kCounted) {
    const Trial trial = MakeTrial(sweep, /*seed=*/1);
    EXPECT_EQ(trial.op.flops(trial.call), flops) << sweep;
  }
}

// If all operands are 1, each multiply-add adds 1 to the results.
TEST(Flops, OfProductsAreTwiceTheSumOfProductsOfOnes) {
  std::set<std::string> counted;
  for (const Counted& each : kCounted) counted.insert(each.sweep.op);
  for (const SweepCase& sweep : AllTrials()) {
    if (GetOp(sweep.op).flops == nullptr || counted.contains(sweep.op)) continue;
    Trial trial = MakeTrial(sweep, /*seed=*/1);
    for (CaseTensor& input : trial.inputs) {
      std::ranges::fill(input.numbers, 1);
      std::ranges::fill(input.integers, -1);  // masks that leave out nothing
    }
    trial.op.reference(trial.call, Views(trial.inputs), Views(trial.outputs));
    double sum = 0;
    for (const CaseTensor& output : trial.outputs) {
      for (const double number : output.numbers) sum += number;
    }
    EXPECT_EQ(trial.op.flops(trial.call), 2 * sum)
        << sweep << "; if it is no product, count one of its cases in kCounted";
  }
}

}  // namespace
}  // namespace syntra
