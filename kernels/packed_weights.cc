// SPDX-License-Identifier: Apache-2.0
#include "kernels/packed_weights.h"

#include <algorithm>

#include "core/device.h"

namespace syntra {

const std::byte* PackedWeights::Get(const void* weights, const std::string& layout, size_t bytes,
                                    const std::function<void(std::byte* packed)>& pack) {
  const std::scoped_lock lock(mutex_);
  std::vector<Packed>& of_weights = packed_[weights];
  const auto known = std::ranges::find_if(of_weights, [&](const Packed& packed) {
    return packed.layout == layout && packed.memory.size() == bytes;
  });
  if (known != of_weights.end()) return known->memory.data();
  Buffer memory = Host().Allocate(bytes, "packed weights");
  pack(memory.data());
  return of_weights.emplace_back(layout, std::move(memory)).memory.data();
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
