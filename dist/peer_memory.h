// SPDX-License-Identifier: Apache-2.0
// A vector of each rank of a host, which the other ranks of the host can read in place.
//
// The pages of this rank's memory become those of a file that lies in memory and has no name
// (memfd_create); the other ranks map it through /proc. So nothing is left behind when a job is
// killed, and the size of /dev/shm does not matter.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "dist/communicator.h"

namespace syntra {

class PeerMemory final : public Exposure {
 public:
  // Collective over `host`; `own` is as long on all ranks and fills a Buffer. Null on all ranks if
  // any of them cannot read another's; `own` has its content and can be used in any case.
  static std::shared_ptr<PeerMemory> Create(MPI_Comm host, std::span<std::byte> own);
  ~PeerMemory() override;
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  bool Contains(std::span<const std::byte> part) const {
    return part.data() >= own_.data() && part.data() + part.size() <= own_.data() + own_.size();
  }
  // The address of rank `local`'s counterpart of this rank's element at `own`.
  const std::byte* At(int local, const std::byte* own) const {
    return of_rank_[local] + (own - own_.data());
  }

 private:
  explicit PeerMemory(std::span<std::byte> own) : own_(own) {}
  bool MapPeers(MPI_Comm host, int own_file);

  std::span<std::byte> own_;
  std::vector<const std::byte*> of_rank_;
};

}  // namespace syntra
