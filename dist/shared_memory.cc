// SPDX-License-Identifier: Apache-2.0
#include "dist/shared_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "core/buffer.h"
#include "dist/mpi_check.h"
#include "dist/reserve.h"

namespace syntra {
namespace {

// Spins while the peers are about to come, then lets others run: ranks may outnumber cores.
void WaitFor(std::atomic_ref<uint64_t> counter, uint64_t value) {
  for (int spin = 0; spin < 2000; ++spin) {
    if (counter.load(std::memory_order_acquire) >= value) return;
    __builtin_ia32_pause();
  }
  const int64_t start = MonotonicNanoseconds();
  while (counter.load(std::memory_order_acquire) < value) {
    if (MonotonicNanoseconds() - start < 2000000) {
      sched_yield();
    } else {
      const timespec pause{0, 50000};
      nanosleep(&pause, nullptr);
    }
  }
}

}  // namespace

bool SharedMemory::Map(const char* name, bool create) {
  const int descriptor = shm_open(name, create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  if (descriptor < 0) {
    Log().warn("cannot open shared memory {}: {}", name, SystemErrorText(errno));
    return false;
  }
  bool reserved = !create || ftruncate(descriptor, bytes()) == 0;
  if (reserved) {
    void* address = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (address != MAP_FAILED) base_ = static_cast<std::byte*>(address);
    reserved = base_ != nullptr;
  }
  if (reserved) {
    const int header = ReserveInFile(descriptor, rank_ * kPageBytes, kPageBytes);
    const int body = ReserveInFile(descriptor, slot(rank_) - base_, slot_bytes_);
    reserved = header == 0 && body == 0;
    errno = header ? header : body;
  }
  if (!reserved)
    Log().warn("cannot reserve {} bytes of shared memory: {}", bytes(), SystemErrorText(errno));
  close(descriptor);
  return reserved;
}

std::unique_ptr<SharedMemory> SharedMemory::Create(MPI_Comm host, size_t slot_bytes) {
  int rank, ranks;
  SYNTRA_MPI(MPI_Comm_rank(host, &rank));
  SYNTRA_MPI(MPI_Comm_size(host, &ranks));
  // Whole pages, so that no two ranks' reservations share one.
  std::unique_ptr<SharedMemory> memory(
      new SharedMemory(rank, ranks, AlignUp(slot_bytes, kPageBytes)));

  char name[64] = {};
  int usable = 1;
  if (rank == 0) {
    snprintf(name, sizeof name, "/syntra-%d-%llx", static_cast<int>(getpid()),
             static_cast<unsigned long long>(MonotonicNanoseconds()));
    usable = memory->Map(name, true);
  }
  SYNTRA_MPI(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, host));
  // Nobody opens the name before it has its size.
  SYNTRA_MPI(MPI_Barrier(host));
  if (rank != 0) usable = memory->Map(name, false);
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, host));
  if (rank == 0) shm_unlink(name);
  if (!usable) return nullptr;
  return memory;
}

SharedMemory::~SharedMemory() {
  if (base_) munmap(base_, bytes());
}

void SharedMemory::Barrier() {
  ++arrivals_;
  const auto counter = [&](int rank) {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(base_ + rank * kPageBytes));
  };
  counter(rank_).store(arrivals_, std::memory_order_release);
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_) WaitFor(counter(peer), arrivals_);
  }
}

}  // namespace syntra
