// SPDX-License-Identifier: Apache-2.0
// For tests that run programs under strace.
#pragma once

#include <cstdlib>

namespace syntra {

// Whether strace can trace processes here. Some containers do not allow it. With the address
// sanitizer the answer is no: its leak check does not work under strace, and it makes system calls
// of its own.
inline bool StraceWorks() {
#if defined(__SANITIZE_ADDRESS__)
  return false;
#else
  return std::system("strace -o /dev/null true 2> /dev/null") == 0;
#endif
}

}  // namespace syntra
