// SPDX-License-Identifier: Apache-2.0
// The simulated GPU: runs GPU kernels on the host. Each thread of a block is a fiber; one processor
// runs them in turn. Barriers, warps and shared memory behave as CUDA documents. The simulation
// reports mistakes: a barrier that not all threads reach, shuffles with lanes that do not take
// part, reads of uninitialised shared memory (it is NaN), and, through access_check.h, data races
// and accesses outside the kernel's memory.
//
// kernels/cuda/gpu.h includes this file instead of CUDA's own headers.
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

// The most shared memory that a block may have. By default it is that of an H100.
size_t MostSharedBytes();
void SetMostSharedBytes(size_t bytes);

// Runs the kernel for every thread of the grid, block after block. TakeComplaints returns the
// errors.
void Run(const Grid& grid, const std::function<void()>& kernel);
// The errors of the runs since the last call, one line each; empty if there were none.
std::string TakeComplaints();
void Complain(const std::string& what);

// The indices of the running thread, as in CUDA.
int ThreadIndex();
int ThreadCount();  // of its block
int64_t BlockIndex();
int64_t BlockCount();

// The block's shared memory. All bits are ones (NaN) when a block starts.
std::byte* SharedMemory();

void SyncThreads();
// Passes a value to the lanes of the mask, which must include this one, and waits for theirs.
// Returns the values of the 32 lanes, kSlotBytes apart, which are valid until this lane's next
// call. The values of lanes outside the mask must not be read.
const std::byte* Exchange(uint32_t mask, const void* value, size_t bytes);

// Copies 16 bytes (zeros if `from` is null) to the block's shared memory. They arrive as late as
// CUDA allows: when the thread waits for the group that it committed them with. Until then the
// target is NaN.
inline constexpr size_t kCopyBytes = 16;
void CopyAsync(void* to, const void* from);
void CommitCopies();
// Waits for all groups that the thread has committed, except the last `left`.
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

// Four 8 x 8 matrices of 16-bit elements. Lane 8 q + r passes the address of row r of matrix q.
class MatrixRows {
 public:
  explicit MatrixRows(const void* own);
  const void* At(int matrix, int row) const;

 private:
  const std::byte* slots_;
};

}  // namespace syntra::simt
