// SPDX-License-Identifier: Apache-2.0
// The lock by which one run owns its run directory: on the file LOCK, whose text tells people who
// holds it. Rank 0 takes it. Commands that only read take none.
#pragma once

#include <string>

#include "base/file.h"
#include "base/file_lock.h"

namespace syntra {

class RunLock {
 public:
  // Throws Error(kLocked) naming the holder's host, process, start time and job.
  explicit RunLock(const Path& run_directory);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // "process 12 on node7 since 2026-01-31 12:00:00" for the holder of the lock; "" if it is free.
  // Creates nothing.
  static std::string HolderOf(const Path& run_directory);
  // Throws as the constructor does if another process holds the lock. Creates nothing.
  static void RequireFree(const Path& run_directory);
  // Call before the run writes into the directory. Throws Error(kResources) if the directory was
  // removed or moved, since writing would recreate it where nobody looks, and Error(kLocked) if
  // LOCK was: another run may own the directory now. Costs four system calls.
  void CheckHeld() const;

 private:
  FileLock lock_;
  File directory_;
};

}  // namespace syntra
