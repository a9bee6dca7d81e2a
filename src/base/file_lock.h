// SPDX-License-Identifier: Apache-2.0
// An exclusive lock of the kernel's on a file (flock(2)). It ends with the process, however that
// ends, so there are no stale locks; the file alone means nothing.
#pragma once

#include <chrono>
#include <optional>

#include "base/file.h"

namespace syntra {

class FileLock {
 public:
  // Creates the file where there is none. Empty if another process holds the lock.
  static std::optional<FileLock> Try(const Path& path);
  // As Try, but waits up to `patience` for the process that holds the lock.
  static std::optional<FileLock> TryFor(const Path& path, std::chrono::milliseconds patience);

  // Whether no process holds the lock of `path`. Creates nothing. Holds it for a moment itself, so
  // a Try of another process may have to try again.
  static bool IsFree(const Path& path);

  // Whether the path still names the file that is locked. If it was removed or replaced, another
  // process may hold a lock of the same name.
  bool IsStillNamed() const { return file_.IsStillNamed(); }
  // The locked file, open for appending.
  File& file() { return file_; }
  int descriptor() const { return file_.descriptor(); }  // negative after a move
  const Path& path() const { return file_.path(); }

 private:
  explicit FileLock(File file) : file_(std::move(file)) {}

  File file_;
};

}  // namespace syntra
