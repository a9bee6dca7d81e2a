// SPDX-License-Identifier: Apache-2.0
#include "dist/nccl.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"

// Throws an Error that names the call, unless it succeeds in the end or within `seconds`. Most
// often it means that a rank is lost; CodeOf has the others.
#define SYNTRA_NCCL(call) SYNTRA_NCCL_WITHIN(INFINITY, call)
#define SYNTRA_NCCL_WITHIN(seconds, call) Call(#call, seconds, [&] { return call; })

namespace syntra {
namespace {

using Seconds = std::chrono::duration<double>;

// "ncclAllReduce" of "nccl_.ncclAllReduce(view.data, ...".
std::string_view FunctionOf(std::string_view call) {
  call = call.substr(0, call.find('('));
  return call.substr(call.rfind('.') + 1);
}

bool IsError(nccl::Result result) {
  return result != nccl::kSuccess && result != nccl::kInProgress;
}

// What NCCL's error means for the job. Its channels take GPU memory at the first collective, after
// the model has taken most of it; a job that is started again would fail in the same way.
ExitCode CodeOf(nccl::Result result) {
  switch (result) {
    case nccl::kUnhandledCudaError:
    case nccl::kInvalidUsage:  // two ranks on one GPU, for example
      return ExitCode::kResources;
    case nccl::kInvalidArgument:
      return ExitCode::kInternal;
    default:
      return ExitCode::kPeerLost;
  }
}

void CheckSum(const TensorView& view) {
  SYNTRA_CHECK(view.type.dtype == DType::kF32, "sum of {}", ToString(view.type));
}

std::byte* At(const TensorView& view, int64_t element) {
  return static_cast<std::byte*>(view.data) + element * SizeOf(view.type.dtype);
}

}  // namespace

NcclCommunicator::NcclCommunicator(Communicator& host, Device& device, const nccl::Library& library,
                                   const NcclOptions& options)
    : host_(host),
      device_(device),
      nccl_(library),
      options_(options),
      exceptions_(std::uncaught_exceptions()),
      side_(device.OpenSideStream()),
      end_seconds_(options.end_seconds) {
  Connect();
  watcher_ = std::thread([this] { Watch(); });
}

void NcclCommunicator::Connect() {
  nccl::Id id{};
  if (rank() == 0) SYNTRA_NCCL(nccl_.ncclGetUniqueId(&id));
  host_.Broadcast({id.bytes, {DType::kI32, Shape{sizeof(id) / 4}}}, 0);
  nccl::Config config;
  SYNTRA_NCCL_WITHIN(options_.connect_seconds,
                     nccl_.ncclCommInitRankConfig(&comm_, size(), id, rank(), &config));
}

NcclCommunicator::~NcclCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  watcher_.join();
  // A rank that leaves with an error cannot wait for the others, and must not end what they wait
  // for before it has told them its error. The end of the process frees what is left.
  if (!problem_.empty() || std::uncaught_exceptions() > exceptions_) return;
  try {
    SYNTRA_NCCL_WITHIN(options_.connect_seconds, nccl_.ncclCommFinalize(comm_));
    SYNTRA_NCCL(nccl_.ncclCommDestroy(std::exchange(comm_, nullptr)));
  } catch (const Error& error) {
    Log().warn("{}", error.what());
  }
}

void NcclCommunicator::Call(const char* name, double seconds,
                            const std::function<nccl::Result()>& call) {
  std::unique_lock lock(mutex_);
  ThrowIfLost();
  const auto start = Clock::now();
  nccl::Result result = call();
  while (result == nccl::kInProgress && comm_ != nullptr) {
    const double waited = Seconds(Clock::now() - start).count();
    Pause(lock, waited);
    ThrowIfLost();
    result = State();
    if (result == nccl::kInProgress && waited > seconds) {
      Lose(fmt::format("{} is not done after {} s, so a rank is lost or cannot be reached (with "
                       "NCCL_DEBUG=INFO in the environment NCCL tells more)",
                       FunctionOf(name), seconds),
           result);
    }
  }
  if (IsError(result)) Lose(fmt::format("{} failed", FunctionOf(name)), result);
  ThrowIfLost();
}

// Pauses grow with the time that was waited: a launch, of which a step has dozens, is done in the
// background within microseconds, but connecting takes seconds.
void NcclCommunicator::Pause(std::unique_lock<std::mutex>& lock, double waited) {
  constexpr double kSpinSeconds = 50e-6, kLongestSeconds = 1e-3;
  if (waited > kSpinSeconds) {
    wake_.wait_for(lock, Seconds(std::min(waited / 4, kLongestSeconds)));
    return;
  }
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
}

void NcclCommunicator::CallForOwners(const char* name, const Shares& shares,
                                     const std::function<nccl::Result(int owner)>& call) {
  Call(name, INFINITY, [&] {
    nccl::Result worst = nccl_.ncclGroupStart();
    for (int owner = 0; owner < shares.ranks() && !IsError(worst); ++owner) {
      if (shares.size(owner) > 0) worst = call(owner);
    }
    const nccl::Result end = nccl_.ncclGroupEnd();
    return IsError(worst) ? worst : end;
  });
}

nccl::Result NcclCommunicator::State() {
  nccl::Result state = nccl::kSuccess;
  const nccl::Result asked = nccl_.ncclCommGetAsyncError(comm_, &state);
  return asked == nccl::kSuccess ? state : asked;
}

void NcclCommunicator::Lose(const std::string& what, nccl::Result result) {
  problem_ = fmt::format("{}: {}", what, nccl_.ncclGetErrorString(result));
  if (const std::string last = nccl_.ncclGetLastError(comm_); !last.empty()) {
    problem_ += fmt::format(" ({})", last);
    if (last.find("out of memory") != last.npos) {
      problem_ += "; NCCL needs GPU memory beside the model: lower train.micro_batch_size";
    }
  }
  code_ = CodeOf(result);
  wake_.notify_all();
}

void NcclCommunicator::ThrowIfLost() const {
  if (!problem_.empty()) throw Error(code_, problem_);
}

void NcclCommunicator::Watch() {
  std::unique_lock lock(mutex_);
  const auto ends = [this] { return stopping_ || !problem_.empty(); };
  while (!wake_.wait_for(lock, Seconds(options_.poll_seconds), ends)) {
    if (const nccl::Result state = State(); IsError(state)) Lose("NCCL lost a rank", state);
  }
  if (problem_.empty()) return;
  // The main thread may wait for a kernel that waits for the lost rank. Aborting makes the kernel
  // return with half a sum; the main thread's next call here throws before any rank can use it.
  // Aborting may wait for the lost rank, too, so nobody waits for it.
  std::thread([abort = nccl_.ncclCommAbort, comm = comm_] { abort(comm); }).detach();
  const auto lost = Clock::now();
  while (SecondsSince(lost) < end_seconds_) {
    if (wake_.wait_for(lock, Seconds(options_.poll_seconds), [this] { return stopping_; })) return;
  }
  PrintError(problem_, fmt::format("rank {}: ", rank()));
  // Without destructors, which would wait for the device. The driver ends what runs on it.
  _exit(static_cast<int>(code_));
}

Communicator& NcclCommunicator::OnHost() {
  const std::lock_guard lock(mutex_);
  ThrowIfLost();
  return host_;
}

bool NcclCommunicator::Serves(const TensorView& view) const {
  SYNTRA_CHECK(view.device->is_host() || view.device == &device_, "a view of {} for NCCL on {}",
               view.device->name(), device_.name());
  return !view.device->is_host();
}

void NcclCommunicator::EnqueueAllReduce(const TensorView& view) {
  if (!Serves(view)) return OnHost().AllReduceSum(view);
  CheckSum(view);
  side_->Fork();
  SYNTRA_NCCL(nccl_.ncclAllReduce(view.data, view.data, view.type.shape.size(), nccl::kFloat32,
                                  nccl::kSum, comm_, side_->stream()));
}

// NCCL knows equal shares alone.
void NcclCommunicator::EnqueueReduceScatter(const TensorView& view, const Shares& shares) {
  if (!Serves(view)) return OnHost().ReduceScatter(view, shares);
  CheckSum(view);
  CheckShares(view, shares);
  side_->Fork();
  if (shares.are_equal()) {
    SYNTRA_NCCL(nccl_.ncclReduceScatter(view.data, At(view, shares.begin(rank())), shares.largest(),
                                        nccl::kFloat32, nccl::kSum, comm_, side_->stream()));
    return;
  }
  CallForOwners("ncclReduce", shares, [&](int owner) {
    std::byte* share = At(view, shares.begin(owner));
    return nccl_.ncclReduce(share, share, shares.size(owner), nccl::kFloat32, nccl::kSum, owner,
                            comm_, side_->stream());
  });
}

void NcclCommunicator::EnqueueAllGather(const TensorView& view, const Shares& shares) {
  if (!Serves(view)) return OnHost().AllGather(view, shares);
  CheckShares(view, shares);
  const size_t size_of = SizeOf(view.type.dtype);
  side_->Fork();
  if (shares.are_equal()) {
    SYNTRA_NCCL(nccl_.ncclAllGather(At(view, shares.begin(rank())), view.data,
                                    shares.largest() * size_of, nccl::kInt8, comm_,
                                    side_->stream()));
    return;
  }
  CallForOwners("ncclBroadcast", shares, [&](int owner) {
    std::byte* share = At(view, shares.begin(owner));
    return nccl_.ncclBroadcast(share, share, shares.size(owner) * size_of, nccl::kInt8, owner,
                               comm_, side_->stream());
  });
}

void NcclCommunicator::Join(const TensorView& view) {
  if (Serves(view)) side_->Join();
}

void NcclCommunicator::AllReduceSum(TensorView view) {
  EnqueueAllReduce(view);
  Join(view);
}

void NcclCommunicator::ReduceScatter(TensorView view, const Shares& shares) {
  EnqueueReduceScatter(view, shares);
  Join(view);
}

void NcclCommunicator::AllGather(TensorView view, const Shares& shares) {
  EnqueueAllGather(view, shares);
  Join(view);
}

void NcclCommunicator::StartAllReduceSum(TensorView view) {
  EnqueueAllReduce(view);
  side_->Mark();
}

void NcclCommunicator::StartReduceScatter(TensorView view, const Shares& shares) {
  EnqueueReduceScatter(view, shares);
  side_->Mark();
}

void NcclCommunicator::StartAllGather(TensorView view, const Shares& shares) {
  EnqueueAllGather(view, shares);
  side_->Mark();
}

void NcclCommunicator::Finish() {
  OnHost();
  side_->JoinMark();
}

void NcclCommunicator::Broadcast(TensorView view, int root) {
  if (!Serves(view)) return OnHost().Broadcast(view, root);
  SYNTRA_CHECK(root >= 0 && root < size(), "broadcast of {} from rank {} of {}",
               ToString(view.type), root, size());
  side_->Fork();
  SYNTRA_NCCL(nccl_.ncclBroadcast(view.data, view.data, view.type.bytes(), nccl::kInt8, root, comm_,
                                  side_->stream()));
  side_->Join();
}

std::vector<double> NcclCommunicator::AllGather(std::span<const double> values) {
  return OnHost().AllGather(values);
}
void NcclCommunicator::AllReduceSum(std::span<double> values) { OnHost().AllReduceSum(values); }
void NcclCommunicator::AllReduceMax(std::span<double> values) { OnHost().AllReduceMax(values); }
void NcclCommunicator::Barrier() { OnHost().Barrier(); }
std::vector<std::string> NcclCommunicator::Gather(std::string_view text) {
  return OnHost().Gather(text);
}

void NcclCommunicator::AbortsWithin(double seconds) {
  const std::lock_guard lock(mutex_);
  end_seconds_ += seconds;
}

void NcclCommunicator::Abort(ExitCode code) {
  host_.Abort(code);
  __builtin_unreachable();  // virtual functions lose the attribute
}

}  // namespace syntra
