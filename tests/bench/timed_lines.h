// SPDX-License-Identifier: Apache-2.0
// What a benchmark program and the script that runs it (measuring.py) say to each other: the
// program prints a line of JSON when it is ready, and one for each line of its standard input,
// which asks for one more measurement. After the last, it prints its peak memory.
#pragma once

#include <fmt/format.h>
#include <time.h>

#include <functional>
#include <iostream>
#include <string>

#include "base/clock.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/memory_limits.h"
#include "base/output.h"

namespace syntra {

inline void PrintLine(const Json& json) {
  fmt::print("{}\n", JsonText(json));
  FlushOutput();
}

// Processor time of all threads of this process, in seconds.
inline double ProcessorSeconds() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID); }

// Calls `body` for each line of standard input, and prints how long it took.
inline void TimeEachLine(const std::function<void()>& body) {
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = Clock::now();
    const double used = ProcessorSeconds();
    body();
    PrintLine({{"seconds", SecondsSince(start)}, {"processor_seconds", ProcessorSeconds() - used}});
  }
}

inline Json PeakMemory() { return {{"peak_resident_bytes", PeakResidentBytes()}}; }

// Runs `work`; if it fails, prints why. Returns the program's exit code.
inline int EndedBy(const std::function<void()>& work) {
  try {
    work();
    return 0;
  } catch (...) {
    const Failure failure = CurrentFailure();
    PrintError(failure.message);
    return static_cast<int>(failure.code);
  }
}

}  // namespace syntra
