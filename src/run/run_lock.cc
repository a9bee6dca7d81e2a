// SPDX-License-Identifier: Apache-2.0
#include "run/run_lock.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/lock_holder.h"

namespace syntra {
namespace {

Path LockOf(const Path& run_directory) { return run_directory / "LOCK"; }

[[noreturn]] void FailHeld(const Path& run_directory, const std::string& holder) {
  Fail(ExitCode::kLocked, "{} is in use by {}; wait for that run, or set another train.directory",
       run_directory.string(), holder);
}

FileLock TakeLock(const Path& run_directory) {
  // RequireFree of another process holds the lock for a moment.
  constexpr auto kMoment = std::chrono::milliseconds(80);
  if (auto lock = FileLock::TryFor(LockOf(run_directory), kMoment)) return *std::move(lock);
  FailHeld(run_directory, HolderIn(LockOf(run_directory)));
}

}  // namespace

std::string RunLock::HolderOf(const Path& run_directory) {
  const Path lock = LockOf(run_directory);
  return FileLock::IsFree(lock) ? "" : HolderIn(lock);
}

void RunLock::RequireFree(const Path& run_directory) {
  const std::string holder = HolderOf(run_directory);
  if (!holder.empty()) FailHeld(run_directory, holder);
}

RunLock::RunLock(const Path& run_directory)
    : directory_(run_directory), lock_(TakeLock(run_directory)) {
  struct stat status;
  if (stat(directory_.c_str(), &status) != 0) {
    Fail(ExitCode::kResources, "cannot look at {}: {}", directory_.string(),
         SystemErrorText(errno));
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  NameHolder(lock_);
}

RunLock::~RunLock() {
  // Emptied, not removed: removing a lock file lets two processes lock two files of the same name.
  ForgetHolder(lock_);
}

bool RunLock::DirectoryIsThere() const {
  struct stat status;
  if (stat(directory_.c_str(), &status) != 0) {
    // Other errors say nothing of the name: a file server may be away for a moment.
    return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  }
  return status.st_dev == device_ && status.st_ino == inode_;
}

void RunLock::CheckHeld() const {
  if (!DirectoryIsThere()) {
    Fail(ExitCode::kResources,
         "the run directory {} was removed or moved while the run trained, so nothing more can be "
         "saved; if it was moved, set train.directory to its new place and start again",
         directory_.string());
  }
  if (!lock_.IsStillNamed()) {
    Fail(ExitCode::kLocked,
         "{} was removed or replaced while this run held it, so another run may use the directory; "
         "this run ends and saves nothing more",
         lock_.path().string());
  }
}

}  // namespace syntra
