// SPDX-License-Identifier: Apache-2.0
// The language of GPU kernels on the host: every thread of a block is a fiber, run in turn on one
// processor, so that barriers, warps and shared memory are what CUDA documents, and mistakes with
// them are found: a barrier that not all reach, lanes that are not there, reads of shared memory
// that nobody wrote, and (access_check.h) accesses that no barrier orders or to memory that is none
// of the kernel's.
//
// kernels/cuda/gpu.h includes this in place of CUDA's own headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__ &  // behind the type: such parameters are not copied for each thread

namespace syntra::simt {

inline constexpr int kWarp = 32;
inline constexpr int kMostThreads = 1024;
// What a lane can hand to the others of its warp at once.
inline constexpr size_t kSlotBytes = 64;

struct Grid {
  int64_t blocks = 1;
  int threads = 1;  // of a block; a multiple of a warp
  size_t shared_bytes = 0;
};

// In which order the threads of a block get their turns. Kernels must not depend on it.
enum class Order { kForward, kBackward, kShuffled };
void SetOrder(Order order);

// Shared memory that a block may have: an H100's until it is set.
size_t MostSharedBytes();
void SetMostSharedBytes(size_t bytes);

// Runs the kernel for every thread of the grid, block after block. What goes wrong is kept for
// TakeComplaints.
void Run(const Grid& grid, const std::function<void()>& kernel);
// What was wrong with the runs since the last call, one line each; empty: nothing.
std::string TakeComplaints();
void Complain(const std::string& what);

// Of the running thread.
int ThreadIndex();
int ThreadCount();  // of its block
int64_t BlockIndex();
int64_t BlockCount();

// The block's shared memory; all ones (NaN) when a block starts.
std::byte* SharedMemory();

void SyncThreads();
// Waits for the lanes of the mask, which must include this one. Gives what each of the 32 lanes
// handed over, kSlotBytes apart, until this lane's next call; lanes outside the mask are not to be
// looked at.
const std::byte* Exchange(uint32_t mask, const void* value, size_t bytes);

// Copies 16 bytes, zeros from null, to the block's shared memory. They arrive as late as they may,
// when the thread waits for the group it committed them with; until then NaN lies in their place.
inline constexpr size_t kCopyBytes = 16;
void CopyAsync(void* to, const void* from);
void CommitCopies();
// Leaves the last `left` of the thread's committed groups under way.
void WaitForCopies(int left);

// The value of another lane of the mask.
template <typename T>
T ShuffleFrom(uint32_t mask, T value, int lane) {
  static_assert(sizeof(T) <= kSlotBytes);
  const std::byte* slots = Exchange(mask, &value, sizeof(T));
  if (lane < 0 || lane >= kWarp || (mask >> lane & 1) == 0) {
    Complain("a lane asks for the value of lane " + std::to_string(lane) +
             ", which is not in the mask");
    return value;
  }
  std::memcpy(&value, slots + lane * kSlotBytes, sizeof(T));
  return value;
}

// The rows of four 8 x 8 matrices of 16-bit elements whose addresses the lanes of a warp give: lane
// 8 q + r that of row r of matrix q.
class MatrixRows {
 public:
  explicit MatrixRows(const void* own);
  const void* At(int matrix, int row) const;

 private:
  const std::byte* slots_;
};

}  // namespace syntra::simt
