// SPDX-License-Identifier: Apache-2.0
#include "run/run_lock.h"

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
    : lock_(TakeLock(run_directory)), directory_(File::OpenForRead(run_directory)) {
  NameHolder(lock_);
}

RunLock::~RunLock() {
  // Emptied, not removed: removing a lock file lets two processes lock two files of the same name.
  ForgetHolder(lock_);
}

void RunLock::CheckHeld() const {
  if (!directory_.IsStillNamed()) {
    Fail(ExitCode::kResources,
         "the run directory {} was removed or moved while the run trained, so nothing more can be "
         "saved; if it was moved, set train.directory to its new place and start again",
         directory_.path().string());
  }
  if (!lock_.IsStillNamed()) {
    Fail(ExitCode::kLocked,
         "{} was removed or replaced while this run held it, so another run may use the directory; "
         "this run ends and saves nothing more",
         lock_.path().string());
  }
}

}  // namespace syntra
