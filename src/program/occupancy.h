// SPDX-License-Identifier: Apache-2.0
// Which offsets of an arena are taken at which instructions.
#pragma once

#include <cstddef>
#include <vector>

namespace syntra {

// Disjoint ranges [begin, end) in ascending order; ranges that touch are one.
class Ranges {
 public:
  void Add(size_t begin, size_t end);
  // The end of the first range that meets [begin, end); `begin` if there is none.
  size_t EndOfFirstIn(size_t begin, size_t end) const;

 private:
  struct Range {
    size_t begin, end;
  };
  std::vector<Range> ranges_;
};

// Offsets that are taken for a time, from one instruction to another, both included. It is a
// segment tree over the instructions. Its nodes keep unions of offsets rather than single
// allocations. Where the arena is packed well these are few, so placing n allocations takes about
// n log n steps, though many are alive at once.
class Occupancy {
 public:
  explicit Occupancy(size_t instructions);

  void Take(size_t first, size_t last, size_t begin, size_t end);
  // The lowest offset of `bytes` bytes that are free from `first` to `last`.
  size_t LowestFree(size_t first, size_t last, size_t bytes);

 private:
  struct Node {
    Ranges always;     // taken during all instructions of the node
    Ranges sometimes;  // taken during any of them
  };
  // Walks through the tree: calls `inside` for nodes inside the wanted instructions, and `around`
  // for nodes that reach beyond them.
  template <typename Inside, typename Around>
  void Walk(size_t first, size_t last, const Inside& inside, const Around& around);

  size_t leaves_;            // a power of two
  std::vector<Node> nodes_;  // node i has the children 2i and 2i + 1; the root is 1
  std::vector<const Ranges*> relevant_;
};

}  // namespace syntra
