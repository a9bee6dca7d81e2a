// SPDX-License-Identifier: Apache-2.0
// The first bytes of an HDF5 file of version 2 or 3, as HDF5 writes it for us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace syntra {

// The first bytes of every HDF5 file.
inline constexpr unsigned char kHdf5Signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

inline bool IsHdf5(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof(kHdf5Signature) &&
         std::memcmp(bytes.data(), kHdf5Signature, sizeof(kHdf5Signature)) == 0;
}

// The "end of file address" of the superblock; nullopt if `image` does not start with a superblock
// of version 2 or 3 with 8-byte addresses.
inline std::optional<uint64_t> SuperblockEndOfFile(std::span<const std::byte> image) {
  constexpr size_t kVersionAt = 8, kAddressBytesAt = 9, kEndOfFileAt = 28, kSize = 48;
  if (image.size() < kSize || !IsHdf5(image)) return std::nullopt;
  const int version = std::to_integer<int>(image[kVersionAt]);
  if ((version != 2 && version != 3) || image[kAddressBytesAt] != std::byte{8}) return std::nullopt;
  uint64_t end = 0;
  for (int i = 7; i >= 0; --i) end = end << 8 | std::to_integer<uint64_t>(image[kEndOfFileAt + i]);
  return end;
}

}  // namespace syntra
