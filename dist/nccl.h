// SPDX-License-Identifier: Apache-2.0
// GPUs connected by NCCL. Views of the device go through NCCL, on a stream beside the device's own;
// everything in the host's memory goes through another communicator.
//
// NCCL sums in an order of its own: the same bits on every rank, and in every run on the same
// machines, but not those of the tree (communicator.h).
//
// NCCL's communicator is used in its non-blocking mode. A call returns while NCCL still connects to
// other ranks, so a thread that waits for a lost rank can meet a deadline or an error. NCCL allows
// one thread at a time, and two use the communicator: a lock keeps them apart.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/communicator.h"
#include "dist/nccl_library.h"

namespace syntra {

struct NcclOptions {
  // How long connecting to the other ranks may take, and leaving them at the end.
  double connect_seconds = 60;
  // The time between two checks for errors that no call returns.
  double poll_seconds = 0.1;
  // How long the caller may take to end the process after such an error, unless it asks for more
  // (AbortsWithin). Then the process is ended here.
  double end_seconds = 10;
};

class NcclCommunicator final : public Communicator {
 public:
  // Collective over `host`, which serves views in host memory; each rank's `device` is another GPU.
  // Both outlive this. Throws Error(kPeerLost) if the ranks cannot be connected. This and every
  // call throw Error(kResources) if NCCL lacks memory or two ranks have one GPU.
  NcclCommunicator(Communicator& host, Device& device, const nccl::Library& library,
                   const NcclOptions& options = {});
  // Collective, unless the communicator has failed or an exception is being thrown.
  ~NcclCommunicator() override;

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  int ranks_on_host() const override { return host_.ranks_on_host(); }
  int rank_on_host() const override { return host_.rank_on_host(); }
  std::string_view name() const override { return "nccl"; }
  void AllReduceSum(TensorView view) override;
  void StartAllReduceSum(TensorView view) override;
  void StartReduceScatter(TensorView view, const Shares& shares) override;
  void ReduceScatter(TensorView view, const Shares& shares) override;
  void AllGather(TensorView view, const Shares& shares) override;
  void StartAllGather(TensorView view, const Shares& shares) override;
  void Finish() override;
  void Broadcast(TensorView view, int root) override;
  std::vector<double> AllGather(std::span<const double> values) override;
  void AllReduceSum(std::span<double> values) override;
  void AllReduceMax(std::span<double> values) override;
  void Barrier() override;
  std::vector<std::string> Gather(std::string_view text) override;
  void AbortsWithin(double seconds) override;
  [[noreturn]] void Abort(ExitCode code) override;

 private:
  void Connect();
  // The host's communicator. Throws if a rank is lost, as all calls do.
  Communicator& OnHost();
  // Whether the view is on the device, and so goes through NCCL.
  bool Serves(const TensorView& view) const;
  // Enqueue a collective on the stream beside the device's own. For a view in the host's memory it
  // is done at once.
  void EnqueueAllReduce(const TensorView& view);
  void EnqueueReduceScatter(const TensorView& view, const Shares& shares);
  void EnqueueAllGather(const TensorView& view, const Shares& shares);
  // Makes the device's next work wait for what was enqueued for the view.
  void Join(const TensorView& view);
  // Calls NCCL and waits, for at most `seconds`, until the call is done in the background, too.
  // `name`: the call, of which messages show the function.
  void Call(const char* name, double seconds, const std::function<nccl::Result()>& call);
  // As Call, with one call for each owner of a share, which NCCL launches together.
  void CallForOwners(const char* name, const Shares& shares,
                     const std::function<nccl::Result(int owner)>& call);

  // With mutex_ held:
  void Pause(std::unique_lock<std::mutex>& lock, double waited);
  nccl::Result State();
  void Lose(const std::string& what, nccl::Result result);
  void ThrowIfLost() const;

  void Watch();

  Communicator& host_;
  Device& device_;
  const nccl::Library& nccl_;
  const NcclOptions options_;
  const int exceptions_;  // how many were being thrown when this was made
  std::unique_ptr<SideStream> side_;

  std::mutex mutex_;
  std::condition_variable wake_;
  nccl::Comm* comm_ = nullptr;
  std::string problem_;                  // what broke the communicator for good; empty: nothing
  ExitCode code_ = ExitCode::kPeerLost;  // of the error that says so
  bool stopping_ = false;
  double end_seconds_;  // options_.end_seconds and what AbortsWithin adds
  std::thread watcher_;
};

}  // namespace syntra
