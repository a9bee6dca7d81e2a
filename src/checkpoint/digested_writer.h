// SPDX-License-Identifier: Apache-2.0
// A new file that is written from its start to its end, past the page cache, and its digest on the
// way.
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
  // The file is on the disk then, and closed.
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
