// SPDX-License-Identifier: Apache-2.0
// Adding the gradients of micro-batches one by one uses the same summation tree as the
// communicators.
#include "train/gradient_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "core/arena.h"
#include "dist/tree_sum.h"
#include "kernels/tested.h"
#include "tests/base/error_of.h"
#include "train/step.h"

namespace syntra {
namespace {

using Vector = std::vector<float>;

// Sizes differ by orders of magnitude, so every other order of additions rounds differently.
std::vector<Vector> Leaves(int64_t count, int64_t elements) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::uniform_real_distribution<float> exponent(-3, 3);
  std::vector<Vector> leaves(count, Vector(elements));
  for (Vector& leaf : leaves) {
    for (float& value : leaf) value = std::exp2(exponent(random)) - 1;
  }
  return leaves;
}

Vector SumOf(std::span<const Vector> sources) {
  std::vector<const float*> pointers;
  for (const Vector& source : sources) pointers.push_back(source.data());
  Vector sum(sources.front().size());
  TreeSum<float>(pointers, sum.data(), sum.size());
  return sum;
}

// As a rank that has these micro-batches.
Vector AddUp(GradientTree& tree, std::span<const Vector> leaves) {
  Arena gradients(FastBackend().device(), std::ssize(leaves.front()), "a test's gradients");
  for (const Vector& leaf : leaves) {
    std::ranges::copy(leaf, gradients.host().begin());
    gradients.Send();
    tree.Add(gradients.view());
  }
  gradients.Fetch();
  return {gradients.host().begin(), gradients.host().end()};
}

TEST(GradientTree, IsTheTreeOverRanks) {
  for (int64_t count = 1; count <= 17; ++count) {
    const std::vector<Vector> leaves = Leaves(count, 10000);
    GradientTree tree(count, 10000, FastBackend());
    const Vector sum = AddUp(tree, leaves);
    EXPECT_EQ(sum, SumOf(leaves)) << count;
    EXPECT_EQ(AddUp(tree, leaves), sum) << "the next step differs";
    if (count < 3) continue;
    Vector chain = leaves[0];
    for (int64_t leaf = 1; leaf < count; ++leaf) chain = SumOf(std::array{chain, leaves[leaf]});
    EXPECT_EQ(chain == sum, count == 3) << count;
  }
}

TEST(GradientTree, DoesNotDependOnTheRanks) {
  for (const int64_t count : {1, 2, 6, 8, 12, 16}) {
    const std::vector<Vector> leaves = Leaves(count, 100);
    const Vector sum = SumOf(leaves);
    for (int64_t ranks = 1; ranks <= count; ++ranks) {
      TrainConfig config;
      config.set_batch_size(static_cast<int>(3 * count));
      config.set_micro_batch_size(3);
      config.set_reduction(TrainConfig::EXACT);
      const bool fits = ranks == 1 || (count % ranks == 0 &&
                                       std::has_single_bit(static_cast<uint64_t>(count / ranks)));
      if (!fits) {
        EXPECT_THROW(BatchPartition::Of(config, static_cast<int>(ranks)), Error);
        continue;
      }
      const int64_t own =
          BatchPartition::Of(config, static_cast<int>(ranks)).micro_batches_per_rank();
      EXPECT_EQ(own * ranks, count);
      std::vector<Vector> parts;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        GradientTree tree(own, 100, FastBackend());
        parts.push_back(AddUp(tree, std::span(leaves).subspan(rank * own, own)));
      }
      EXPECT_EQ(SumOf(parts), sum) << count << " on " << ranks;
    }
  }
}

TEST(GradientTree, Buffers) {
  const int buffers[] = {0, 1, 2, 2, 3, 3, 3, 3, 4};
  for (int leaves = 1; leaves <= 9; ++leaves) {
    EXPECT_EQ(TreeLevels(leaves), buffers[leaves - 1]) << leaves;
  }
}

TEST(BatchPartition, NamesTheRanksThatShareATree) {
  TrainConfig config;
  config.set_batch_size(12);
  config.set_micro_batch_size(1);
  config.set_reduction(TrainConfig::EXACT);
  const std::string error = ErrorOf([&] { BatchPartition::Of(config, 4); }, ExitCode::kConfig);
  EXPECT_NE(error.find("4 ranks cannot share one tree of 12 micro-batches, as train.reduction "
                       "EXACT needs; start 1, 3, 6, 12 ranks or change train.micro_batch_size"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace syntra
