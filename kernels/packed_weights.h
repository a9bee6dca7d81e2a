// SPDX-License-Identifier: Apache-2.0
// Weights in the layout that products read fastest, for programs whose parameters do not change:
// they are packed once, instead of by each product or not at all. With few rows, as in decoding, a
// product of packed weights is up to twice as fast.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/buffer.h"

namespace syntra {

class PackedWeights {
 public:
  // The weights at these addresses, side by side, in `layout`, which `pack` writes when they are
  // first asked for. Products with equal layouts share them. Any thread may call it. Throws
  // Error(kResources) if there is no memory for them.
  template <typename Pack>
  const std::byte* Get(std::span<const void* const> parts, const std::string& layout, size_t bytes,
                       const Pack& pack) {
    return Find(parts, layout, bytes, std::ref(pack));  // allocates nothing to hold it
  }
  // To be called when parameters have changed; no program may be running.
  void Clear() { packed_.clear(); }
  size_t bytes() const;

 private:
  const std::byte* Find(std::span<const void* const> parts, const std::string& layout, size_t bytes,
                        const std::function<void(std::byte* packed)>& pack);

  struct Packed {
    std::vector<const void*> parts;
    std::string layout;
    Buffer memory;
  };
  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::vector<Packed>> packed_;  // by the first part
};

}  // namespace syntra
