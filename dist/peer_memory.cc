// SPDX-License-Identifier: Apache-2.0
#include "dist/peer_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/memory_limits.h"
#include "core/buffer.h"
#include "dist/mpi_check.h"
#include "dist/reserve.h"

namespace syntra {
namespace {

constexpr size_t kPage = 4096;
// Pages are replaced in blocks of this size: while one is replaced, it exists twice.
constexpr size_t kBlock = size_t{64} << 20;

// How other processes find the file of a rank. Device and inode tell whether it is the right one:
// containers number their processes on their own, so another process may have the same number.
struct FilePlace {
  int64_t process, descriptor, device, inode;
};

// Replaces the pages of `block` by those of the file from `offset` on, with the same content.
bool MoveToFile(std::span<std::byte> block, int file, off_t offset) {
  const size_t bytes = AlignUp(block.size(), kPage);
  // Memory that is not there is an error now instead of a SIGBUS later.
  if (ReserveInFile(file, offset, static_cast<off_t>(bytes)) != 0) return false;
  void* pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, offset);
  if (pages == MAP_FAILED) return false;
  std::memcpy(pages, block.data(), block.size());
  if (mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, block.data()) != MAP_FAILED) {
    return true;
  }
  munmap(pages, bytes);
  return false;
}

bool MoveAllToFile(std::span<std::byte> memory, int file) {
  if (file < 0 || reinterpret_cast<uintptr_t>(memory.data()) % kPage != 0) return false;
  for (size_t at = 0; at < memory.size(); at += kBlock) {
    const std::span<std::byte> block = memory.subspan(at, std::min(kBlock, memory.size() - at));
    if (!MoveToFile(block, file, static_cast<off_t>(at))) return false;
  }
  return true;
}

FilePlace PlaceOf(int file) {
  struct stat status = {};
  if (file >= 0) fstat(file, &status);
  return {getpid(), file, static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino)};
}

// Null if it cannot be read.
const std::byte* MapFile(const FilePlace& place, size_t bytes) {
  const std::string name = fmt::format("/proc/{}/fd/{}", place.process, place.descriptor);
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  const FilePlace found = PlaceOf(file);
  void* pages = MAP_FAILED;
  if (found.device == place.device && found.inode == place.inode) {
    pages = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  }
  close(file);
  return pages == MAP_FAILED ? nullptr : static_cast<const std::byte*>(pages);
}

}  // namespace

bool PeerMemory::MapPeers(MPI_Comm host, int own_file) {
  int rank, ranks;
  SYNTRA_MPI(MPI_Comm_rank(host, &rank));
  SYNTRA_MPI(MPI_Comm_size(host, &ranks));
  const FilePlace mine = PlaceOf(own_file);
  std::vector<FilePlace> places(ranks);
  SYNTRA_MPI(
      MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, host));
  for (int peer = 0; peer < ranks; ++peer) {
    of_rank_.push_back(peer == rank ? own_.data() : MapFile(places[peer], own_.size()));
  }
  return std::ranges::find(of_rank_, nullptr) == of_rank_.end();
}

std::shared_ptr<PeerMemory> PeerMemory::Create(MPI_Comm host, std::span<std::byte> own) {
  std::shared_ptr<PeerMemory> memory(new PeerMemory(own));
  const int file = memfd_create("syntra-vector", MFD_CLOEXEC);
  // Memory that a rank maps from others would count towards its address space (ulimit -v).
  int usable = !AddressSpaceLimit() && MoveAllToFile(own, file);
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, host));
  if (usable) usable = memory->MapPeers(host, file);
  // Nobody closes the file before all have it.
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, host));
  if (file >= 0) close(file);
  return usable ? memory : nullptr;
}

PeerMemory::~PeerMemory() {
  for (const std::byte* pages : of_rank_) {
    if (pages && pages != own_.data()) munmap(const_cast<std::byte*>(pages), own_.size());
  }
}

}  // namespace syntra
