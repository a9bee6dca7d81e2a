// SPDX-License-Identifier: Apache-2.0
#include "kernels/packed_weights.h"

#include <algorithm>

#include "core/device.h"

namespace syntra {

const std::byte* PackedWeights::Find(std::span<const void* const> parts, const std::string& layout,
                                     size_t bytes,
                                     const std::function<void(std::byte* packed)>& pack) {
  const std::scoped_lock lock(mutex_);
  std::vector<Packed>& of_first = packed_[parts[0]];
  const auto known = std::ranges::find_if(of_first, [&](const Packed& packed) {
    return packed.layout == layout && packed.memory.size() == bytes &&
           std::ranges::equal(packed.parts, parts);
  });
  if (known != of_first.end()) return known->memory.data();
  Buffer memory = Host().Allocate(bytes, "packed weights");
  pack(memory.data());
  return of_first.emplace_back(std::vector(parts.begin(), parts.end()), layout, std::move(memory))
      .memory.data();
}

size_t PackedWeights::bytes() const {
  const std::scoped_lock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [weights, all] : packed_) {
    for (const Packed& packed : all) bytes += packed.memory.size();
  }
  return bytes;
}

}  // namespace syntra
