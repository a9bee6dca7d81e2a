// SPDX-License-Identifier: Apache-2.0
#include "program/occupancy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace syntra {
namespace {

// Every byte at every instruction.
class Grid {
 public:
  Grid(size_t instructions, size_t bytes) : taken_(instructions, std::vector<bool>(bytes)) {}

  void Take(size_t first, size_t last, size_t begin, size_t end) {
    for (size_t i = first; i <= last; ++i) {
      std::fill(taken_[i].begin() + begin, taken_[i].begin() + end, true);
    }
  }
  size_t LowestFree(size_t first, size_t last, size_t bytes) const {
    size_t offset = 0;
    while (!IsFree(first, last, offset, offset + bytes)) ++offset;
    return offset;
  }

 private:
  bool IsFree(size_t first, size_t last, size_t begin, size_t end) const {
    for (size_t i = first; i <= last; ++i) {
      for (size_t byte = begin; byte < end; ++byte) {
        if (taken_[i][byte]) return false;
      }
    }
    return true;
  }
  std::vector<std::vector<bool>> taken_;
};

TEST(Occupancy, FindsWhatAGridOfBytesFinds) {
  std::mt19937 random(1);
  for (const size_t instructions : {1, 2, 5, 16, 23}) {
    for (int round = 0; round < 20; ++round) {
      Occupancy occupancy(instructions);
      Grid grid(instructions, 600);
      for (int i = 0; i < 60; ++i) {
        const size_t a = random() % instructions, b = random() % instructions;
        const size_t first = std::min(a, b), last = std::max(a, b), bytes = random() % 10;
        const size_t offset = occupancy.LowestFree(first, last, bytes);
        ASSERT_EQ(offset, grid.LowestFree(first, last, bytes)) << instructions << " " << i;
        // Not only where it fits: holes of every size must be found again.
        const size_t begin = offset + (random() % 3 == 0 ? random() % 4 : 0);
        occupancy.Take(first, last, begin, begin + bytes);
        grid.Take(first, last, begin, begin + bytes);
      }
    }
  }
}

}  // namespace
}  // namespace syntra
