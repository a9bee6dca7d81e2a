// SPDX-License-Identifier: Apache-2.0
// Ranks connected by MPI. Ranks of one host exchange vectors through shared memory, hosts by
// MPI_Alltoallv and MPI_Allgatherv. MPI never adds: MPI_Allreduce of Open MPI 4.1 moves 2 GB/s at
// 256 MB between two ranks of one host, and its order of summation depends on size and settings.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "dist/chunks.h"
#include "dist/communicator.h"
#include "dist/peer_memory.h"
#include "dist/shared_memory.h"

namespace syntra {

struct MpiOptions {
  // The number of ranks that share memory; 0: all ranks of a host. Tests set it to simulate several
  // hosts.
  int ranks_per_host = 0;
  // Shared memory per rank and buffer (there are two), for vectors that are not exposed.
  int64_t chunk_bytes = kChunkBytes;
};

class MpiCommunicator final : public Communicator {
 public:
  // MPI_Init_thread (FUNNELED: only the thread that made this may call it), unless MPI runs
  // already; the destructor finalizes what the constructor started.
  MpiCommunicator(int* argc, char*** argv, const MpiOptions& options = {});
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int ranks_on_host() const override { return ranks_on_host_; }
  int rank_on_host() const override { return rank_on_host_; }
  std::string_view name() const override { return "mpi"; }
  void AllReduceSum(TensorView view) override;
  void ReduceScatter(TensorView view, const Shares& shares) override;
  void AllGather(TensorView view, const Shares& shares) override;
  std::shared_ptr<Exposure> Expose(TensorView view) override;
  void Broadcast(TensorView view, int root) override;
  std::vector<double> AllGather(std::span<const double> values) override;
  void AllReduceSum(std::span<double> values) override;
  void AllReduceMax(std::span<double> values) override;
  void Barrier() override;
  std::vector<std::string> Gather(std::string_view text) override;
  [[noreturn]] void Abort(ExitCode code) override;

 private:
  // Vectors move in chunks; a chunk has one piece of every rank's share.
  struct Chunk {
    std::byte* data;
    const Shares& shares;  // in bytes
    int64_t start;         // of the piece inside its share
    int64_t piece;
    const PeerMemory* exposed;  // the vector, if it is exposed; null: it moves through the slots

    std::byte* At(int owner) const { return data + shares.begin(owner) + start; }
    int64_t Length(int owner) const;
  };

  // How many ranks may sum in shared memory before hosts exchange, without leaving the order of
  // sums.
  int FindRanksPerGroup(int wanted);
  void Connect(const MpiOptions& options);
  // Calls `collective` for host copies of the view's pieces of at most `elements`, and copies the
  // results back: MPI never sees a device's memory.
  void ThroughHost(const TensorView& view, int64_t elements,
                   const std::function<void(TensorView)>& collective);
  // As above, for a collective by shares, which is called with the shares of each piece.
  void ThroughHost(const TensorView& view, const Shares& shares,
                   const std::function<void(TensorView, const Shares&)>& collective);
  // What an exchange does: it sums the ranks' vectors in each one's share, brings all shares to
  // every rank, or one after the other.
  struct Halves {
    bool reduces = false, gathers = false;
  };
  // The shares are in bytes.
  void Exchange(std::byte* data, const Shares& shares, Halves halves);
  void ReduceChunk(const Chunk& chunk);
  void GatherChunk(const Chunk& chunk);
  // This rank's slot for a piece.
  std::byte* Slot(int local, int owner, const Chunk& chunk) const;
  // Where a piece of a rank of the host can be read.
  const std::byte* Readable(int local, int owner, const Chunk& chunk) const;
  std::shared_ptr<PeerMemory> FindExposed(std::span<const std::byte> vector) const;
  // The bytes of the peers' pieces, and where they lie in sent_ and received_.
  std::vector<int> Lengths(const Chunk& chunk) const;
  std::vector<int> Offsets(const Chunk& chunk) const;

  bool owns_mpi_ = false;
  MPI_Comm world_ = MPI_COMM_NULL;
  // The ranks that share memory: locals_ of them, from rank / locals_ * locals_.
  MPI_Comm group_ = MPI_COMM_NULL;
  MPI_Comm peers_ = MPI_COMM_NULL;  // the ranks with the same place in every group
  int rank_ = 0, size_ = 1, rank_on_host_ = 0, ranks_on_host_ = 1;
  int local_ = 0, locals_ = 1;  // this rank's place in the group; the group's size
  int groups_ = 1;
  int64_t piece_bytes_ = 0;    // in a slot, at most
  int64_t message_bytes_ = 0;  // to another group, at most
  int64_t turn_ = 0;           // which of the two buffers the next chunk uses
  std::unique_ptr<SharedMemory> shared_;
  std::vector<std::weak_ptr<PeerMemory>> exposed_;
  Buffer sent_, received_;  // a message for each group
  Buffer staging_;          // of views in a device's memory
};

}  // namespace syntra
