// SPDX-License-Identifier: Apache-2.0
// A file that is read from start to end, while its digest is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/file.h"

namespace syntra {

class DigestedFile {
 public:
  // `file` must outlive it.
  explicit DigestedFile(File& file);

  // All three throw Error(kResources) if the file cannot be read.
  // False at the end of the file.
  bool Read(std::span<std::byte> bytes);
  // Reads up to `offset`; false where the file ends before, or was read further.
  bool SkipTo(int64_t offset);
  // Reads the next `bytes` bytes and returns their digest alone; "" at the end of the file.
  std::string DigestOfNext(int64_t bytes);

  // The offset up to which the file was read.
  int64_t at() const { return at_; }
  // The digest of all that was read.
  std::string Finish() const { return ToHex(digest_.Finish()); }

 private:
  bool ReadBlock(std::span<std::byte> block);

  File& file_;
  DigestStream digest_;
  std::vector<std::byte> ignored_;
  int64_t at_ = 0;
};

}  // namespace syntra
