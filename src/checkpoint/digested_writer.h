// SPDX-License-Identifier: Apache-2.0
// A new file that is written from start to end, past the page cache, while its digest is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/digest.h"
#include "base/direct_io.h"
#include "base/file.h"
#include "checkpoint/manifest.h"

namespace syntra {

class DigestedWriter {
 public:
  // All throw Error(kResources) if the file cannot be created or written.
  explicit DigestedWriter(const Path& path);
  void Write(std::span<const std::byte> bytes);
  // Closes the file, which is then on the disk, and returns its digest.
  FileDigest Finish();

 private:
  void WriteBlock();

  File file_;
  DigestStream digest_;
  DirectBlock block_;
  size_t used_ = 0;  // of the block
  int64_t written_ = 0;
};

}  // namespace syntra
