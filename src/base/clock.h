// SPDX-License-Identifier: Apache-2.0
// Two clocks. Clock measures durations: it never goes back. WallClock, which may be set back, gives
// times that people read or that outlive the process.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace syntra {

using Clock = std::chrono::steady_clock;
using WallClock = std::chrono::system_clock;

// Seconds since some moment before the process began. The clock is CLOCK_MONOTONIC.
inline double MonotonicSeconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// As MonotonicSeconds, in nanoseconds. Signal handlers may call it.
inline int64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}

// What a clock of the system says, in seconds: CLOCK_THREAD_CPUTIME_ID is the processor time that
// this thread has used, CLOCK_PROCESS_CPUTIME_ID that of all threads.
inline double SecondsOf(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds since 1970.
inline double UnixSeconds() {
  return std::chrono::duration<double>(WallClock::now().time_since_epoch()).count();
}

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace syntra
