// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <sys/file.h>

#include <cerrno>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/uninterrupted.h"

namespace syntra {
namespace {

// `kind`: LOCK_EX or LOCK_SH. False if another process holds the lock.
bool TryLock(const File& file, int kind) {
  if (Uninterrupted([&] { return flock(file.descriptor(), kind | LOCK_NB); }) == 0) return true;
  const int error_number = errno;
  if (error_number == EWOULDBLOCK) return false;
  const bool has_no_locks =
      error_number == ENOLCK || error_number == ENOSYS || error_number == EOPNOTSUPP;
  Fail(ExitCode::kResources, "cannot lock {}: {}{}", file.path().string(),
       SystemErrorText(error_number),
       has_no_locks ? "; its file system must have flock(2) (Lustre: the mount option flock; NFS: "
                      "a lock service), or the directory must lie on another one"
                    : "");
}

}  // namespace

bool FileLock::IsFree(const Path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return true;
  // Closing the file ends the lock. It is shared, so two that ask do not meet.
  return TryLock(File::OpenOwnForRead(path), LOCK_SH);
}

std::optional<FileLock> FileLock::Try(const Path& path) {
  while (true) {
    FileLock lock(File::OpenForAppend(path));
    if (!TryLock(lock.file_, LOCK_EX)) return std::nullopt;
    // The holder before us may have removed it between our opening and our locking it.
    if (lock.IsStillNamed()) return lock;
  }
}

std::optional<FileLock> FileLock::TryFor(const Path& path, std::chrono::milliseconds patience) {
  constexpr auto kPause = std::chrono::milliseconds(2);
  const auto end = Clock::now() + patience;
  for (;;) {
    std::optional<FileLock> lock = Try(path);
    if (lock || Clock::now() >= end) return lock;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace syntra
