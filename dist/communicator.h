// SPDX-License-Identifier: Apache-2.0
// The collectives of the ranks of a data-parallel job. Every call is collective: all ranks make the
// same calls in the same order. A call on host memory returns when this rank's part is done. A call
// on a device's memory is enqueued there like a kernel: after the work enqueued before it, and
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
  // The number of ranks on this rank's machine, itself included, which share the machine's cores.
  virtual int ranks_on_host() const = 0;
  // This rank's index among them.
  virtual int rank_on_host() const = 0;
  virtual std::string_view name() const = 0;  // "self", "mpi", "nccl"

  // Sums f32 views in place. The views of this and of the following calls may be in the memory of
  // the host or of a device.
  virtual void AllReduceSum(TensorView view) = 0;

  // Sums f32 views and leaves on each rank its own share of the sum in place; the other shares keep
  // what the rank put there.
  virtual void ReduceScatter(TensorView view, const Shares& shares) = 0;
  // Copies every rank's own share to all ranks. The view may have any type.
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
  // Makes work that is enqueued on the device from now on run after the oldest collective that was
  // started and not yet finished. There must be one. The host does not wait.
  virtual void Finish() {}

  // Copies rank `root`'s view to all ranks. The view may have any type.
  virtual void Broadcast(TensorView view, int root) = 0;

  // Returns every rank's values on all ranks, one rank after the other. For short vectors.
  virtual std::vector<double> AllGather(std::span<const double> values) = 0;

  // Take the sum or the maximum of short vectors in place: losses, counts (exact up to 2^53),
  // flags.
  virtual void AllReduceSum(std::span<double> values) = 0;
  virtual void AllReduceMax(std::span<double> values) = 0;

  // Returns once all ranks have called it.
  virtual void Barrier() = 0;

  // Returns every rank's text in rank order on rank 0; nothing on the others.
  virtual std::vector<std::string> Gather(std::string_view text) = 0;

  // Reports that this rank has failed and will call Abort, but first finishes something else, in at
  // most the given seconds. Until then a lost rank is no reason to end the process.
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

// Whether the flag is set on any rank; on every rank.
bool AnyRank(Communicator& ranks, bool flag);

// The largest of the ranks' numbers, on every rank. They are at most 2^53, the limit of doubles.
int64_t LargestOfRanks(Communicator& ranks, int64_t number);

// Replaces `text` with rank 0's on every rank.
void BroadcastText(Communicator& ranks, std::string* text);

// Returns every rank's line in rank order, on every rank. A line must not contain a newline.
std::vector<std::string> AllGatherLines(Communicator& ranks, std::string_view line);

// Makes a communicator of MPI if an MPI launcher started this process, otherwise of one rank,
// without starting MPI. Call it once, early, from the main thread. Throws Error(kConfig), which
// says what to do, if the launcher started several tasks that MPI cannot join.
std::unique_ptr<Communicator> MakeCommunicator(int* argc, char*** argv);

}  // namespace syntra
