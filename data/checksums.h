// SPDX-License-Identifier: Apache-2.0
// Checksums of the blocks of a file, written at its end. With them a reader checks the few bytes
// that it needs. A digest of the whole file would make it read all of it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace syntra {

// As large as a page, the least that is read from a disk. It is checked in a third of a
// microsecond, and the checksums take 1/512 of the file.
inline constexpr size_t kChecksumBlock = size_t{4} << 10;

// Of bytes that come piece by piece.
class ChecksumWriter {
 public:
  void Add(std::span<const std::byte> bytes);
  // What is to be written after the bytes: the XXH3-64 of each block, then a seal with a digest of
  // these checksums. The number of bytes must be a multiple of 8.
  std::vector<std::byte> End();

 private:
  std::vector<std::byte> begun_;  // less than a block
  std::vector<uint64_t> checksums_;
  uint64_t bytes_ = 0;
};

// Reads them from a file in memory, which must outlive this.
class Checksums {
 public:
  // nullopt: the file does not end with checksums, or these are damaged.
  static std::optional<Checksums> AtEndOf(std::span<const std::byte> file);

  // The bytes before the checksums.
  std::span<const std::byte> content() const { return content_; }
  // The first block that is damaged, of those in which bytes [begin, end) of the content lie, by
  // its first byte.
  std::optional<size_t> FirstDamaged(size_t begin, size_t end) const;

 private:
  Checksums(std::span<const std::byte> content, std::span<const uint64_t> checksums)
      : content_(content), checksums_(checksums) {}

  std::span<const std::byte> content_;
  std::span<const uint64_t> checksums_;
};

}  // namespace syntra
