// SPDX-License-Identifier: Apache-2.0
// How tests wait for other threads and processes.
//
// The machine may be busy, so no test says how fast something must be. It waits until something
// happens, and fails only where it would wait for ever: after minutes. Limits of the program
// itself, such as the watchdog's, are compared with what the program says, which can only be
// longer.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/host.h"

namespace syntra {

// Whatever has not happened by then never will. Below the time that ctest gives a test.
inline constexpr double kHangSeconds = 240;

inline void SleepSeconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Polls until `condition` holds; false if it never does.
template <typename Condition>
bool WaitUntil(const Condition& condition) {
  for (const double end = MonotonicSeconds() + kHangSeconds; !condition(); SleepSeconds(0.002)) {
    if (MonotonicSeconds() > end) return false;
  }
  return true;
}

// The seconds that `text`, a watchdog's report, gives after `what`: "hangs in save at step 5:
// writing for 2 s". -1 if it does not say that.
inline double ReportedSeconds(const std::string& text, const std::string& what) {
  const size_t at = text.find(what), seconds = text.find(" for ", at);
  if (at == text.npos || seconds == text.npos) return -1;
  return std::atof(text.c_str() + seconds + 5);
}

}  // namespace syntra
