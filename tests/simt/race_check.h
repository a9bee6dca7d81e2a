// Finds accesses of two threads to the same bytes that nothing orders, one of them a write: threads
// of a block with no barrier between (of a warp: no exchange of its lanes between), blocks of a
// grid at all. Kernel sources are compiled with the instrumentation of the thread sanitizer, whose
// calls race_check.cc answers in the place of its run-time library. Atomics are not counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syntra::simt::race_check {

// On from the start. It takes most of the time of a kernel.
void SetEnabled(bool enabled);

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

// All threads of the block, or the lanes of a warp that met, are past this point.
void PassBarrier();
void PassWarp(int warp);

}  // namespace syntra::simt::race_check
