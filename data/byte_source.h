// SPDX-License-Identifier: Apache-2.0
// A stream of bytes from a file, gunzipped on the way when the file starts with gzip's magic
// number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/file.h"

namespace syntra {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills as much of `bytes` as the stream still has; fewer than asked means the stream has ended.
  // Throws Error(kData) naming file, byte offset and reason if the compressed data is damaged or
  // ends early; what was delivered before must then be discarded with the shard.
  virtual size_t Read(std::span<std::byte> bytes) = 0;

  const Path& path() const { return file_.path(); }

 protected:
  explicit ByteSource(File file) : file_(std::move(file)) {}

  File file_;
};

// A corpus file, opened. Error(kData) if it is not a regular file; never waits for one.
File OpenCorpusFile(const Path& path);

// Whether these are the first bytes of a gzip file.
bool StartsLikeGzip(std::span<const std::byte> bytes);

// A name ending in ".gz" without gzip content, or without any, is an error.
std::unique_ptr<ByteSource> OpenByteSource(const Path& path);

}  // namespace syntra
