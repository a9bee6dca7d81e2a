// One run owns a run directory. The lock is flock(2) on the file LOCK: the kernel releases it when
// the process ends, however it ends, so there are no stale locks to remove. The file tells people
// who holds it. Rank 0 holds it; commands that only read take none.
#pragma once

#include "base/file.h"

namespace syntra {

class RunLock {
 public:
  // Throws Error(kLocked) naming the holder's host, process, start time and job.
  explicit RunLock(const Path& run_directory);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Throws as the constructor does if another process holds the lock. Creates nothing.
  static void RequireFree(const Path& run_directory);

 private:
  File file_;
};

}  // namespace syntra
