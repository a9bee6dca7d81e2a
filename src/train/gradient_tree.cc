#include "train/gradient_tree.h"

#include <algorithm>
#include <bit>

#include "core/thread.h"

namespace syntra {
namespace {

// Elements that one thread adds at a time: they stay in its cache from level to level.
constexpr int64_t kBlock = 4096;

std::span<float> Floats(const Buffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

}  // namespace

GradientTree::GradientTree(int64_t leaves, int64_t elements) : leaves_(leaves) {
  for (int level = 0; level < BuffersFor(leaves); ++level) {
    levels_.emplace_back(elements * sizeof(float), "sums of gradients");
  }
}

int GradientTree::BuffersFor(int64_t leaves) {
  return std::bit_width(static_cast<uint64_t>(leaves) - 1);
}

void GradientTree::Add(std::span<float> gradients) {
  const uint64_t kept = added_;
  const bool last = ++added_ == leaves_;
  if (last) added_ = 0;
  // The subtrees that end here: of equal size, but at the last leaf all that are left.
  const int level = last ? std::bit_width(kept) : std::countr_one(kept);
  ParallelFor(gradients.size(), kBlock, [&](int64_t first, int64_t end) {
    for (int64_t begin = first; begin < end; begin += kBlock) {
      const std::span<float> sum = gradients.subspan(begin, std::min(kBlock, end - begin));
      for (int below = 0; below < level; ++below) {
        if ((kept >> below & 1) == 0) continue;
        const float* left = Floats(levels_[below]).data() + begin;
        for (size_t i = 0; i < sum.size(); ++i) sum[i] = left[i] + sum[i];
      }
      if (!last) std::ranges::copy(sum, Floats(levels_[level]).data() + begin);
    }
  });
}

}  // namespace syntra
