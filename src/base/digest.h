// SPDX-License-Identifier: Apache-2.0
// XXH3: finds damage and changes in files; no defence against forgery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"

namespace syntra {

// XXH3-128, in its canonical (big-endian) byte order.
using Digest = std::array<uint8_t, 16>;

Digest DigestOf(std::span<const std::byte> bytes);
Digest DigestOf(std::string_view text);
// The digest of the rest of the file, from where it is read next to its end. `after_block` is
// called after each few MB.
Digest DigestOfRest(File& file, const std::function<void()>& after_block = {});
// 32 lower-case hexadecimal digits.
std::string ToHex(const Digest& digest);
inline std::string HexDigestOf(std::span<const std::byte> bytes) { return ToHex(DigestOf(bytes)); }

// A digest of 64 bits, enough to compare a few values with each other.
uint64_t ShortDigestOf(std::span<const std::byte> bytes);

// A digest of bytes that come piece by piece.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(const DigestStream&) = delete;
  DigestStream& operator=(const DigestStream&) = delete;

  void Add(std::span<const std::byte> bytes);
  Digest Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syntra
