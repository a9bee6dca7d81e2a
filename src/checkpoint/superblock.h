// SPDX-License-Identifier: Apache-2.0
// The first bytes of an HDF5 file of version 2 or 3, as HDF5 writes it for us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace syntra {

// The "end of file address" of the superblock; nullopt if `image` does not start with a superblock
// of version 2 or 3 with 8-byte addresses.
inline std::optional<uint64_t> SuperblockEndOfFile(std::span<const std::byte> image) {
  static constexpr unsigned char kSignature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  constexpr size_t kVersionAt = 8, kAddressBytesAt = 9, kEndOfFileAt = 28, kSize = 48;
  if (image.size() < kSize || std::memcmp(image.data(), kSignature, sizeof(kSignature)) != 0) {
    return std::nullopt;
  }
  const int version = std::to_integer<int>(image[kVersionAt]);
  if ((version != 2 && version != 3) || image[kAddressBytesAt] != std::byte{8}) return std::nullopt;
  uint64_t end = 0;
  for (int i = 7; i >= 0; --i) end = end << 8 | std::to_integer<uint64_t>(image[kEndOfFileAt + i]);
  return end;
}

}  // namespace syntra
