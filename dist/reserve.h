// SPDX-License-Identifier: Apache-2.0
// Reserves room in a file that lies in memory. Without room, touching its pages would end the
// process.
#pragma once

#include <fcntl.h>

#include <cerrno>

namespace syntra {

// Returns 0, or an error number. A signal makes the system begin again, so this tries several
// times.
inline int ReserveInFile(int file, off_t offset, off_t bytes) {
  constexpr int kTries = 100;
  int problem = EINTR;
  for (int i = 0; i < kTries && problem == EINTR; ++i) {
    problem = posix_fallocate(file, offset, bytes);
  }
  return problem;
}

}  // namespace syntra
