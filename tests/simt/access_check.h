// SPDX-License-Identifier: Apache-2.0
// Looks at every access of a kernel to memory. Finds
//   races: accesses of two threads to the same bytes that nothing orders, one of them a write:
//   threads of a block with no barrier between (of a warp: no exchange of its lanes between),
//   blocks of a grid at all. Atomics are not counted;
//   accesses to memory that is Forbidden.
// Kernel sources are compiled with the instrumentation of the thread sanitizer, whose calls
// access_check.cc answers in the place of its run-time library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syntra::simt::access_check {

// On from the start. It takes most of the time of a kernel.
void SetEnabled(bool enabled);

// Behind a block's shared memory, for whoever reaches beyond.
inline constexpr size_t kGuardBytes = 256;

// Of a grid, then of each of its blocks.
void StartGrid();
void StartBlock(std::span<const std::byte> shared, std::span<const std::byte> stacks);
// Around the turns of a thread; accesses outside of turns do not count.
void Enter(int thread);
void Leave();

// What the thread whose turn it is touches, where no instrumented code does it.
void Note(const void* at, size_t bytes, bool write);

// While one lives, instrumented accesses do not count. So the host's GPU marks its own, since the
// linker takes some of its templates from instrumented files, and tests runs of no interest here.
class Aside {
 public:
  Aside();
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  bool before_;
};

// Memory that nobody must touch while it lives, such as what lies beside the operands of kernels.
// Whole elements of two bytes count; under AddressSanitizer, which then does all this, every byte.
class Forbidden {
 public:
  explicit Forbidden(std::span<const std::byte> memory);
  ~Forbidden();
  Forbidden(const Forbidden&) = delete;
  Forbidden& operator=(const Forbidden&) = delete;

 private:
  std::span<const std::byte> memory_;
};

// All threads of the block, or the lanes of a warp that met, are past this point.
void PassBarrier();
void PassWarp(int warp);

}  // namespace syntra::simt::access_check
