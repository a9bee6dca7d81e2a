// SPDX-License-Identifier: Apache-2.0
// What the ranks of a data-parallel job do together. Every call is collective: all ranks make the
// same calls in the same order. A call on host memory returns when this rank's part is done. A
// call on a device's memory is enqueued there like a kernel: after the work enqueued before it, and
// before the work enqueued later.
//
// Sums are taken element by element over a fixed binary tree of ranks, ((0+1)+(2+3))+..., the lower
// rank on the left. So every rank gets the same bits, repeated runs get the same bits, and partial
// sums that a rank forms by the same tree over its own micro-batches give the same bits at 1, 2, 4,
// 8 ranks. NCCL (nccl.h) sums views of a device in an order of its own, and keeps only the first
// two promises.
//
// If the transport fails, a call throws Error(kPeerLost). If it fails in work that was enqueued on
// a device, a later call throws, and everything read from the device before that call is to be
// discarded. A rank that fails for a reason of its own must call Abort; otherwise its peers, and
// MPI_Finalize, wait for it until the watchdog ends them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/tensor.h"
#include "dist/shares.h"

namespace syntra {

// Memory that other ranks may read as long as this lives.
class Exposure {
 public:
  virtual ~Exposure() = default;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Ranks that share this rank's machine, itself included: how many ways its cores are shared.
  virtual int ranks_on_host() const = 0;
  // This rank's place among them.
  virtual int rank_on_host() const = 0;
  virtual std::string_view name() const = 0;  // "self", "mpi", "nccl"

  // In place, for views of f32. The views of this and of the following calls may be in the memory
  // of the host or of a device.
  virtual void AllReduceSum(TensorView view) = 0;

  // Sums f32 views and leaves on each rank its own share of the sum in place; the other shares keep
  // what the rank put there.
  virtual void ReduceScatter(TensorView view, const Shares& shares) = 0;
  // Copies every rank's own share to all, any type.
  virtual void AllGather(TensorView view, const Shares& shares) = 0;

  // Lets the other ranks of this host read the memory of a view, so that collectives over the view
  // or parts of it copy less. Best effort: null where it is impossible or would not help. The view
  // must fill a Buffer, which gets other pages under the same addresses and with the same content.
  virtual std::shared_ptr<Exposure> Expose(TensorView) { return nullptr; }

  // Start AllReduceSum, ReduceScatter or AllGather on a stream of its own. Work that is enqueued on
  // the view's device meanwhile must not touch the view before Finish. Not inside Device::Capture.
  virtual void StartAllReduceSum(TensorView view) { AllReduceSum(view); }
  virtual void StartReduceScatter(TensorView view, const Shares& shares) {
    ReduceScatter(view, shares);
  }
  virtual void StartAllGather(TensorView view, const Shares& shares) { AllGather(view, shares); }
  // Work enqueued on the device from now on runs after the oldest of those that were started and
  // not yet finished, of which there is one. The host does not wait.
  virtual void Finish() {}

  virtual void Broadcast(TensorView view, int root) = 0;

  // For short vectors: every rank's values on all ranks, one rank after the other.
  virtual std::vector<double> AllGather(std::span<const double> values) = 0;

  // For short vectors: losses, counts (exact up to 2^53), flags. In place.
  virtual void AllReduceSum(std::span<double> values) = 0;
  virtual void AllReduceMax(std::span<double> values) = 0;

  virtual void Barrier() = 0;

  // Every rank's text in rank order on rank 0; empty on the others.
  virtual std::vector<std::string> Gather(std::string_view text) = 0;

  // This rank has failed and calls Abort, but first finishes something else, for at most so many
  // seconds. Until then a lost rank is no reason to end the process.
  virtual void AbortsWithin(double /*seconds*/) {}

  // Ends the whole job with this exit code, from any state, without running destructors.
  [[noreturn]] virtual void Abort(ExitCode code) = 0;

 protected:
  void CheckShares(const TensorView& view, const Shares& shares) const {
    SYNTRA_CHECK(shares.ranks() == size() && shares.elements() == view.type.shape.size(),
                 "{} in shares of {} ranks that end at {}", ToString(view.type), shares.ranks(),
                 shares.elements());
  }
};

// Rank 0's text on every rank.
void BroadcastText(Communicator& ranks, std::string* text);

// Every rank's line in rank order, on every rank. There is no newline in a line.
std::vector<std::string> AllGatherLines(Communicator& ranks, std::string_view line);

// MPI when this process was started by an MPI launcher, otherwise one rank without starting MPI at
// all. Call once, early, from the main thread. Throws Error(kConfig) when the launcher started
// several tasks that MPI cannot join, with what to do about it.
std::unique_ptr<Communicator> MakeCommunicator(int* argc, char*** argv);

}  // namespace syntra
