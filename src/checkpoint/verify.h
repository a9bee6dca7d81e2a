// SPDX-License-Identifier: Apache-2.0
// Judges one checkpoint directory: the same code for a save's own check, recovery and readers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "core/buffer.h"

namespace syntra {

// A directory in which every byte agrees with the manifest. Its files are held open, so deleting or
// replacing them cannot change what is read. The manifest has every tensor's offset, whatever
// version was read.
struct VerifiedDirectory {
  Manifest manifest;
  std::map<std::string, File> files;
};

// Where files are read from. A save that reads back what it wrote must read from the disk; others
// read files a second time after verifying them, so the page cache serves them.
enum class ReadFrom { kPageCache, kDisk };

// Throws Error(kCheckpoint) naming file and reason if anything is damaged, missing, additional, a
// symbolic link, or of another step; UnsupportedFormat for newer versions; Error(kResources) if
// something cannot be read.
VerifiedDirectory VerifyDirectory(const Path& directory, std::optional<int64_t> expected_step = {},
                                  ReadFrom from = ReadFrom::kPageCache);

// The bytes of a verified file. Throws Error(kCheckpoint) if they have changed since.
Buffer ReadVerified(File& file, const FileDigest& expected);

// The content of one file of a checkpoint, compared with the manifest alone; nullopt if the
// manifest names no such file. Throws Error(kCheckpoint) or Error(kResources).
std::optional<std::string> ReadCheckpointFile(const Path& directory, const std::string& name);

// The manifest alone, without a look at the files that it names. Throws Error(kCheckpoint) or
// Error(kResources).
Manifest ReadManifest(const Path& directory);

}  // namespace syntra
