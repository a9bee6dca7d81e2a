// XXH3-128 digests: they find accidents (bit rot, truncation, swapped files), not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/digest.h"
#include "base/file.h"

namespace syntra {

struct FileDigest {
  int64_t bytes;
  std::string digest;
};

// Reads `file` from its start to its end.
FileDigest DigestOfFile(File& file);

// Reads `file` from its start into `bytes`; false if it is shorter.
bool ReadFromStart(File& file, std::span<std::byte> bytes);

}  // namespace syntra
