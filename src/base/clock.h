// SPDX-License-Identifier: Apache-2.0
// The clock by which durations are measured: it never goes back.
#pragma once

#include <chrono>

namespace syntra {

using Clock = std::chrono::steady_clock;

// Seconds since some moment before the process began. The clock is CLOCK_MONOTONIC.
inline double MonotonicSeconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Seconds since 1970 by the wall's clock, which may be set back: for people and for what must
// outlive the process.
inline double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace syntra
