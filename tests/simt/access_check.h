// SPDX-License-Identifier: Apache-2.0
// Checks every memory access of a kernel. It finds
//   data races: two threads access the same bytes, at least one writes, and nothing orders them.
//     Barriers of the block order its threads, barriers of a warp its lanes, barriers in shared
//     memory those who arrive before those who wait (Clock), and nothing the blocks of a grid.
//     Shuffles, matrix loads and products order nothing. Atomics are not checked;
//   asynchronous accesses of shared memory that a thread has written and not fenced, and
//     asynchronous writes of what a thread has read and not fenced;
//   accesses to memory that is Forbidden.
// Kernel sources are compiled with the instrumentation of the thread sanitizer. access_check.cc
// implements its callbacks instead of the sanitizer's run-time library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/simt/simt.h"

namespace syntra::simt::access_check {

// While an object exists, kernels are not checked, which takes most of their time.
class Unchecked {
 public:
  Unchecked();
  ~Unchecked();
  Unchecked(const Unchecked&) = delete;
  Unchecked& operator=(const Unchecked&) = delete;

 private:
  bool before_;
};

// Bytes after a block's shared memory in which accesses beyond its end are found.
inline constexpr size_t kGuardBytes = 256;

// Call StartGrid for a grid, then StartBlock for each of its blocks.
void StartGrid();
void StartBlock(int threads, std::span<const std::byte> shared, std::span<const std::byte> stacks);
// Call these when a thread starts and stops to run. Accesses outside are not checked.
void Enter(int thread);
void Leave();

// Reports an access of the running thread by code that is not instrumented.
void Note(const void* at, size_t bytes, bool write);
// Reports one that the running thread has started and that is made asynchronously, by a copy of a
// tile or by a product (kernels/cuda/hopper.h). It may come before what threads have written, and a
// write before what they have read, since their last FenceAsync.
void NoteAsync(const void* at, size_t bytes, bool write);
void FenceAsync();

// How far the accesses of each thread of the block are known, in a stretch between two of the
// block's barriers. Threads hand it over through barriers in shared memory.
struct Clock {
  uint64_t stretch = 0;
  uint32_t steps[kMostThreads] = {};  // the thread's accesses before this step are known
};
// Adds to the clock what the running thread has done, and what it knows of others.
void Release(Clock& clock);
// From here on the running thread knows what the clock holds.
void Acquire(const Clock& clock);

// While an object exists, instrumented accesses are not checked. The simulated GPU uses it for its
// own accesses, since the linker takes some of its templates from instrumented files.
class Aside {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  bool before_;
};

// While an object exists, no kernel may access this memory, for example the bytes beside operands.
// Only whole elements of two bytes are checked. Under AddressSanitizer, which then does the check,
// it is every byte.
class Forbidden {
 public:
  explicit Forbidden(std::span<const std::byte> memory);
  ~Forbidden();
  Forbidden(const Forbidden&) = delete;
  Forbidden& operator=(const Forbidden&) = delete;

 private:
  std::span<const std::byte> memory_;
};

// All threads of the block, or all lanes of the warp, have reached a barrier.
void PassBarrier();
void PassWarpBarrier(int warp);

}  // namespace syntra::simt::access_check
