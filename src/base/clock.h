// SPDX-License-Identifier: Apache-2.0
// Two clocks: durations are measured by the one that never goes back, and what people read, or what
// must outlive the process, is told by the wall's, which may be set back.
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

// The same in nanoseconds. Signal handlers may call it.
inline int64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}

// Seconds since 1970.
inline double UnixSeconds() {
  return std::chrono::duration<double>(WallClock::now().time_since_epoch()).count();
}

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace syntra
