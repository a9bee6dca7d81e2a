// SPDX-License-Identifier: Apache-2.0
#include "dist/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "core/buffer.h"
#include "dist/mpi_check.h"
#include "dist/reserve.h"

namespace syntra {
namespace {

// Spins while the peers are about to come, then lets others run, then sleeps: ranks may outnumber
// cores, and many that look again and again would leave no time to those that compute.
void WaitWhile(const std::atomic<uint32_t>& word, uint32_t value) {
  for (int spin = 0; spin < 2000; ++spin) {
    if (word.load(std::memory_order_acquire) != value) return;
    __builtin_ia32_pause();
  }
  const int64_t start = MonotonicNanoseconds();
  while (word.load(std::memory_order_acquire) == value) {
    if (MonotonicNanoseconds() - start < 2000000) {
      sched_yield();
    } else {
      syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
    }
  }
}

void WakeAll(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

int SharedMemory::MapFile(int file, bool create) {
  if (create && ftruncate(file, bytes()) != 0) return errno;
  void* address = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) return errno;
  base_ = static_cast<std::byte*>(address);
  const int problem = create ? ReserveInFile(file, 0, kPageBytes) : 0;
  return problem ? problem : ReserveInFile(file, slot(rank_) - base_, slot_bytes_);
}

int SharedMemory::Map(const char* name, bool create) {
  const int file = shm_open(name, create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  if (file < 0) return errno;
  const int problem = MapFile(file, create);
  close(file);
  return problem;
}

std::unique_ptr<SharedMemory> SharedMemory::Create(MPI_Comm host, size_t slot_bytes) {
  int rank, ranks;
  SYNTRA_MPI(MPI_Comm_rank(host, &rank));
  SYNTRA_MPI(MPI_Comm_size(host, &ranks));
  // Whole pages, so that no two ranks' reservations share one.
  std::unique_ptr<SharedMemory> memory(
      new SharedMemory(rank, ranks, AlignUp(slot_bytes, kPageBytes)));

  char name[64] = {};
  int problem = 0;
  if (rank == 0) {
    snprintf(name, sizeof name, "/syntra-%d-%llx", static_cast<int>(getpid()),
             static_cast<unsigned long long>(MonotonicNanoseconds()));
    problem = memory->Map(name, true);
  }
  SYNTRA_MPI(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, host));
  // Nobody opens the name before it has its size.
  SYNTRA_MPI(MPI_Barrier(host));
  if (rank != 0) problem = memory->Map(name, false);
  // Where the first rank cannot make the file, the others only say that there is none (ENOENT, 2).
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &problem, 1, MPI_INT, MPI_MAX, host));
  if (rank == 0) shm_unlink(name);
  if (problem == 0) return memory;
  if (rank == 0) {
    Log().warn("the {} ranks of {} cannot reserve {} bytes of shared memory: {}{}", ranks,
               HostName(), memory->bytes(), SystemErrorText(problem),
               problem == ENOSPC ? "; enlarge /dev/shm" : "");
  }
  return nullptr;
}

SharedMemory::~SharedMemory() {
  if (base_) munmap(base_, bytes());
}

void SharedMemory::Barrier() {
  Meeting& meeting = *reinterpret_cast<Meeting*>(base_);
  // It does not end before this rank has arrived.
  const uint32_t number = meeting.number.load(std::memory_order_relaxed);
  if (meeting.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < static_cast<uint32_t>(ranks_)) {
    return WaitWhile(meeting.number, number);
  }
  meeting.arrived.store(0, std::memory_order_relaxed);
  meeting.number.store(number + 1, std::memory_order_release);
  WakeAll(meeting.number);
}

}  // namespace syntra
