// SPDX-License-Identifier: Apache-2.0
// The stacks of all threads of this process, for reports of hangs.
#pragma once

namespace syntra {

// Call once before WriteStacks, while the process is healthy: takes the signal SIGRTMIN + 3 and
// loads what unwinding needs.
void PrepareStacks();

// Writes the stack of every thread but the caller to `descriptor`, in at most `seconds` and a
// little. A thread that does not answer within 0.3 s, for instance because it is blocked in the
// kernel, is only named. One caller at a time.
void WriteStacks(int descriptor, double seconds);

}  // namespace syntra
