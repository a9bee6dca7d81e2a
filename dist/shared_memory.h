// SPDX-License-Identifier: Apache-2.0
// Memory shared by the ranks of one host: a slot of bytes for each rank, and a barrier.
//
// A POSIX shared-memory object whose name is removed as soon as all ranks have it open, so nothing
// is left behind when a job is killed. Each rank reserves its own slot, which puts the pages on its
// own NUMA node and turns a full /dev/shm into an error instead of a later SIGBUS.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace syntra {

class SharedMemory {
 public:
  // Collective over `host`. Null on all ranks, with one warning, if any of them cannot have the
  // memory.
  static std::unique_ptr<SharedMemory> Create(MPI_Comm host, size_t slot_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* slot(int rank) const { return base_ + kPageBytes + rank * slot_bytes_; }

  // Returns once all ranks of the host have called it as often as this rank. Orders memory.
  void Barrier();

 private:
  // The shared memory begins with it, on a page of its own.
  struct Meeting {
    alignas(64) std::atomic<uint32_t> arrived;  // ranks, at the present barrier
    alignas(64) std::atomic<uint32_t> number;   // of barriers that have ended
  };
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  static constexpr size_t kPageBytes = 4096;

  SharedMemory(int rank, int ranks, size_t slot_bytes)
      : rank_(rank), ranks_(ranks), slot_bytes_(slot_bytes) {}
  size_t bytes() const { return kPageBytes + ranks_ * slot_bytes_; }
  // Return an error number, or 0.
  int Map(const char* name, bool create);
  int MapFile(int file, bool create);

  int rank_;
  int ranks_;
  size_t slot_bytes_;
  std::byte* base_ = nullptr;
};

}  // namespace syntra
