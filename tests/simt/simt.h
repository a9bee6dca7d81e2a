// SPDX-License-Identifier: Apache-2.0
// The simulated GPU: runs GPU kernels on the host. Each thread of a block is a fiber; one processor
// runs them in turn. Barriers, warps and shared memory are simulated as CUDA documents them. The
// simulation reports mistakes: a barrier that not all threads reach, shuffles that not all lanes
// take part in, reads of uninitialised shared memory (it is NaN), and, through access_check.h, data
// races and accesses outside the kernel's memory.
//
// What it does not find:
//   - the blocks of a grid run one after the other, so a kernel whose blocks wait for each other is
//     not tested: its fences and the order of its writes have no effect here;
//   - atomics are executed, but not checked (access_check.h);
//   - when a program runs on the simulated device, nothing is checked for races (device.cc): only
//     the tests that run single kernels do so.
//
// kernels/cuda/gpu.h includes this file instead of CUDA's own headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__ &  // follows the type: such parameters are not copied for each thread

namespace syntra::simt {

inline constexpr int kWarp = 32;
inline constexpr int kMostThreads = 1024;
// The most bytes that a lane can pass to the other lanes of its warp at once.
inline constexpr size_t kSlotBytes = 64;

struct Grid {
  int64_t blocks = 1;
  int threads = 1;  // of a block; a multiple of a warp
  size_t shared_bytes = 0;
};

// The order in which the threads of a block run. Kernels must not depend on it.
enum class Order { kForward, kBackward, kShuffled };
void SetOrder(Order order);
void InEveryOrder(const std::function<void()>& run);  // then forward again

// The most shared memory that a block may have, and ten times the compute capability. By default
// they are those of an H100.
size_t MostSharedBytes();
void SetMostSharedBytes(size_t bytes);
int Capability();
void SetCapability(int capability);
// Few multiprocessors, so that small calls have blocks with much to do.
inline constexpr int kMultiprocessors = 4;

// Runs the kernel for every thread of the grid, block after block. TakeComplaints returns the
// errors.
void Run(const Grid& grid, const std::function<void()>& kernel);
// The errors of the runs since the last call, one line each; empty if there were none.
std::string TakeComplaints();
void Complain(const std::string& what);

// The indices of the running thread, as in CUDA. They stay the same while a function runs, since it
// runs in the fiber of one thread: so the compiler may ask once.
[[gnu::const]] int ThreadIndex();
[[gnu::const]] int ThreadCount();  // of its block
[[gnu::const]] int64_t BlockIndex();
[[gnu::const]] int64_t BlockCount();

// The block's shared memory. All bits are ones (NaN) when a block starts.
[[gnu::const]] std::byte* SharedMemory();
// The address within it.
uint32_t SharedAddress(const void* pointer);

// Barriers of the block and of the warp. They order memory between the threads that they wait for.
void SyncThreads();
void SyncWarp();

// Waits until `ready`, which the scheduler calls, returns true. It orders no memory.
void WaitUntil(std::function<bool()> ready);

// In what follows all lanes of a warp wait for each other. That orders no memory, since CUDA
// promises it of barriers alone.

// Replaces the bytes by those of another lane.
void Shuffle(void* value, size_t bytes, int lane);
template <typename T>
T ShuffleFrom(T value, int lane) {
  static_assert(sizeof(T) <= kSlotBytes);
  Shuffle(&value, sizeof(T), lane);
  return value;
}

// Loads four 8 x 8 matrices of 16-bit elements (PTX ISA, ldmatrix): lane 8 q + r passes the address
// of row r of matrix q, and gets two elements of each matrix. `transposed`: of their transposes.
void LoadMatrices(uint32_t (&pairs)[4], const void* row, bool transposed);

// c += A B for a lane's four sums of a 16 x 8 tile and its pairs of bf16 elements of A [16, 16] and
// B [16, 8] (PTX ISA, mma.m16n8k16).
void MultiplyMatrices(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

// Copies 16 bytes (zeros if `from` is null) to the block's shared memory. They arrive as late as
// CUDA allows: when the thread waits for the group that it committed them with. Until then the
// target holds kUnwritten: NaN, as all shared memory of a block at first.
inline constexpr size_t kCopyBytes = 16;
inline constexpr auto kUnwritten = std::byte{0xFF};
void CopyAsync(void* to, const void* from);
void CommitCopies();
// Waits for all groups that the thread has committed, except the last `left`.
void WaitForCopies(int left);

}  // namespace syntra::simt
