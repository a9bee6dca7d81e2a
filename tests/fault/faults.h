// SPDX-License-Identifier: Apache-2.0
// What may happen to a run. tests/README.md has the numbers of these faults in the table of all.
#pragma once

#include <span>
#include <string>

#include "tests/fault/disturbed_run.h"

namespace syntra {

struct Fault {
  const char* name;
  // Starts the run, lets the fault happen, and leaves the run for DisturbedRun::Finish. Throws
  // Violation.
  void (*happen)(DisturbedRun& run);
  // What it needs and this machine lacks; "" if it can happen here.
  std::string (*missing)();
};

std::span<const Fault> Faults();

// Asks for small disks of this process's own: to be called once, before threads and files. Without
// it there are none.
void AllowSmallDisks();

}  // namespace syntra
