// SPDX-License-Identifier: Apache-2.0
// Room in a file in memory. Where there is none, touching its pages would end the process.
#pragma once

#include <fcntl.h>

#include <cerrno>

namespace syntra {

// 0, or an error number. A signal makes the system begin again, so this is tried several times.
inline int ReserveInFile(int file, off_t offset, off_t bytes) {
  constexpr int kTries = 100;
  int problem = EINTR;
  for (int i = 0; i < kTries && problem == EINTR; ++i) {
    problem = posix_fallocate(file, offset, bytes);
  }
  return problem;
}

}  // namespace syntra
