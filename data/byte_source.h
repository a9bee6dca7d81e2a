// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, decompressed if the file starts with gzip's magic number.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/file.h"

namespace syntra {

// A file is read in blocks. The first is small because some callers only look at the first records.
inline constexpr size_t kFirstBlockBytes = size_t{16} << 10;
inline constexpr size_t kBlockBytes = size_t{1} << 20;

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `bytes` and returns how many were read. Fewer than `bytes.size()` means that the stream
  // has ended. Throws Error(kData) with file, byte offset and reason if the compressed data is
  // damaged or ends early; bytes returned before that must not be used either.
  virtual size_t Read(std::span<std::byte> bytes) = 0;

  const Path& path() const { return file_.path(); }

 protected:
  explicit ByteSource(File file) : file_(std::move(file)) {}

  File file_;
};

// Opens a corpus file. Throws Error(kData) if it is not a regular file; never blocks on a FIFO.
File OpenCorpusFile(const Path& path);

// Whether these are the first bytes of a gzip file.
bool StartsLikeGzip(std::span<const std::byte> bytes);

// Throws Error(kData) if the name ends in ".gz" and the file is empty or not gzip, or if another
// program has compressed the file.
std::unique_ptr<ByteSource> OpenByteSource(const Path& path);

}  // namespace syntra
