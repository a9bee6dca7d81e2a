// SPDX-License-Identifier: Apache-2.0
// A fake libnccl.so.2 for the simulated GPU (tests/simt). Collectives use MPI when the stream
// reaches them. Mistakes to which NCCL reacts with a hang or wrong values are errors here or end
// the process: concurrent calls, a call before the last one is done, ranks with different calls,
// a group that mixes streams, buffers that are not in place.
//
// The environment variable SYNTRA_FAKE_NCCL plants a fault. "alone": connecting never ends.
// "refused": connecting fails. "full": the GPU has no memory for the first collective. "lost": from
// the third collective on, the kernel hangs until the communicator is aborted, and there is an
// asynchronous error. "stuck": the same, and aborting hangs too.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dist/nccl_library.h"
#include "tests/simt/device.h"

namespace syntra::nccl {

// Polls that a call which goes on in the background takes.
constexpr int kPolls = 3;
constexpr auto kSystemError = Result{2}, kRemoteError = Result{6};

struct Comm {
  MPI_Comm ranks = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::atomic<int> polls = 0;
  std::atomic<int> collectives = 0;
  std::atomic<bool> broken = false, aborted = false, inside = false;
  bool finalized = false;
  MPI_Request farewell = MPI_REQUEST_NULL;  // of all ranks
};

namespace {

bool Planted(const char* fault) {
  static const char* planted = std::getenv("SYNTRA_FAKE_NCCL");
  return planted && std::string(planted) == fault;
}

// A call's stay inside the library.
class Visit {
 public:
  explicit Visit(Comm* comm) : comm_(comm), alone_(!comm->inside.exchange(true)) {}
  ~Visit() {
    if (alone_) comm_->inside = false;
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Whether a call that is not a poll may begin.
  bool allowed() const { return alone_ && comm_->polls == 0 && !comm_->finalized; }
  bool alone() const { return alone_; }

 private:
  Comm* comm_;
  bool alone_;
};

// Ends the process unless all ranks hold the same value.
void Compare(const Comm& comm, const char* what, uint64_t value) {
  uint64_t ends[2] = {value, ~value};
  MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UINT64_T, MPI_MIN, comm.ranks);
  if (ends[0] == ~ends[1]) return;
  fprintf(stderr, "rank %d: the ranks' %s differ\n", comm.rank, what);
  std::abort();
}

uint64_t Hash(const Id& id) {
  uint64_t hash = 0;
  for (const char byte : id.bytes) hash = hash * 31 + static_cast<unsigned char>(byte);
  return hash;
}

// Behaves like a kernel that waits for a lost rank.
void Hang(Comm* comm) {
  comm->broken = true;
  while (!comm->aborted) std::this_thread::yield();
}

// The calls between ncclGroupStart and ncclGroupEnd of a thread.
struct Group {
  int depth = 0;
  Comm* comm = nullptr;
  void* stream = nullptr;
  size_t count = 0;
  std::vector<std::function<void()>> works;
};
thread_local Group group;

// Whether a call is on the communicator and the stream of the group's others.
bool Join(Comm* comm, void* stream, size_t count, std::function<void()> work) {
  if (!group.works.empty() && (comm != group.comm || stream != group.stream)) return false;
  group.comm = comm;
  group.stream = stream;
  group.count += count;
  group.works.push_back(std::move(work));
  return true;
}

// Gives `work`, which ranks that are not alone do together, to the stream. `kind` and `count`: to
// be the same on all ranks.
Result Enqueue(Comm* comm, void* stream, int kind, size_t count, std::function<void()> work) {
  if (group.depth > 0) {
    return Join(comm, stream, count * 8 + kind, std::move(work)) ? kSuccess : kInvalidUsage;
  }
  const Visit visit(comm);
  if (!visit.allowed() || stream == nullptr) return kInvalidUsage;
  const int number = ++comm->collectives;
  if (Planted("full")) return kUnhandledCudaError;
  const bool hangs = number >= 3 && (Planted("lost") || Planted("stuck"));
  simt::Give(stream, [=] {
    if (hangs) return Hang(comm);
    if (comm->size == 1) return;
    Compare(*comm, "collectives", count * 8 + kind);
    work();
  });
  if (number > 1) return kSuccess;
  // Connections are made when they are first needed.
  comm->polls = kPolls;
  return kInProgress;
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}

const char* ncclGetErrorString(Result result) {
  switch (static_cast<int>(result)) {
    case kUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case kSystemError:
      return "unhandled system error";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "no error, or one that this library does not make";
  }
}

const char* ncclGetLastError(Comm*) {
  return Planted("full") ? "Cuda failure 2 'out of memory'" : "the planted fault";
}

Result ncclGetUniqueId(Id* id) {
  const std::string text = "process " + std::to_string(getpid());
  *id = {};
  text.copy(id->bytes, sizeof(id->bytes));
  id->bytes[sizeof(id->bytes) - 1] = 1;
  return kSuccess;
}

Result ncclCommInitRankConfig(Comm** made, int ranks, Id id, int rank, Config* config) {
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->blocking != 0) {
    return kInvalidArgument;
  }
  auto* comm = *made = new Comm{.rank = rank, .size = ranks};
  if (ranks > 1) {
    int mpi_rank = 0, mpi_size = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm->ranks);
    MPI_Comm_rank(comm->ranks, &mpi_rank);
    MPI_Comm_size(comm->ranks, &mpi_size);
    if (mpi_rank != rank || mpi_size != ranks) return kInvalidArgument;
    Compare(*comm, "ids", Hash(id));
  }
  comm->polls = kPolls;
  return kInProgress;
}

Result ncclCommGetAsyncError(Comm* comm, Result* error) {
  const Visit visit(comm);
  if (!visit.alone()) return kInvalidUsage;
  // Long enough for a call at the same time to be seen.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  *error = kSuccess;
  int farewell_done = 1;
  if (comm->farewell != MPI_REQUEST_NULL) {
    MPI_Test(&comm->farewell, &farewell_done, MPI_STATUS_IGNORE);
  }
  if (comm->broken) {
    *error = kRemoteError;
  } else if (!farewell_done) {
    *error = kInProgress;
  } else if (comm->polls > 0) {
    const bool last = comm->polls == 1;
    if (last && Planted("refused")) {
      *error = kSystemError;
      return kSuccess;
    }
    if (!last || !Planted("alone")) --comm->polls;
    if (comm->polls > 0) *error = kInProgress;
  }
  return kSuccess;
}

Result ncclCommFinalize(Comm* comm) {
  const Visit visit(comm);
  if (!visit.allowed()) return kInvalidUsage;
  comm->finalized = true;
  if (comm->size > 1) MPI_Ibarrier(comm->ranks, &comm->farewell);
  comm->polls = kPolls;
  return kInProgress;
}

Result ncclCommDestroy(Comm* comm) {
  if (!comm->finalized || comm->polls > 0 || comm->farewell != MPI_REQUEST_NULL) {
    return kInvalidUsage;
  }
  if (comm->ranks != MPI_COMM_NULL) MPI_Comm_free(&comm->ranks);
  delete comm;
  return kSuccess;
}

// Work that hangs still reads the communicator, so it is not deleted.
Result ncclCommAbort(Comm* comm) {
  while (Planted("stuck")) std::this_thread::yield();
  comm->aborted = true;
  return kSuccess;
}

Result ncclGroupStart() {
  ++group.depth;
  return kSuccess;
}

// All of them are one launch.
Result ncclGroupEnd() {
  if (group.depth == 0) return kInvalidUsage;
  if (--group.depth > 0 || group.works.empty()) return kSuccess;
  const Group done = std::exchange(group, {});
  return Enqueue(done.comm, done.stream, 5, done.count, [works = done.works] {
    for (const auto& work : works) work();
  });
}

Result ncclAllReduce(const void* send, void* receive, size_t count, DataType type,
                     Operation operation, Comm* comm, void* stream) {
  if (send != receive || type != kFloat32 || operation != kSum) return kInvalidArgument;
  return Enqueue(comm, stream, 0, count, [=] {
    MPI_Allreduce(MPI_IN_PLACE, receive, static_cast<int>(count), MPI_FLOAT, MPI_SUM, comm->ranks);
  });
}

Result ncclReduce(const void* send, void* receive, size_t count, DataType type, Operation operation,
                  int root, Comm* comm, void* stream) {
  if (send != receive || type != kFloat32 || operation != kSum) return kInvalidArgument;
  return Enqueue(comm, stream, 4, count, [=] {
    const bool here = comm->rank == root;
    MPI_Reduce(here ? MPI_IN_PLACE : send, here ? receive : nullptr, static_cast<int>(count),
               MPI_FLOAT, MPI_SUM, root, comm->ranks);
  });
}

Result ncclReduceScatter(const void* send, void* receive, size_t received, DataType type,
                         Operation operation, Comm* comm, void* stream) {
  const float* all = static_cast<const float*>(send);
  if (receive != all + comm->rank * received || type != kFloat32 || operation != kSum) {
    return kInvalidArgument;
  }
  return Enqueue(comm, stream, 1, received, [=] {
    std::vector<float> share(received);
    MPI_Reduce_scatter_block(send, share.data(), static_cast<int>(received), MPI_FLOAT, MPI_SUM,
                             comm->ranks);
    std::copy(share.begin(), share.end(), static_cast<float*>(receive));
  });
}

Result ncclAllGather(const void* send, void* receive, size_t sent, DataType type, Comm* comm,
                     void* stream) {
  if (send != static_cast<char*>(receive) + comm->rank * sent || type != kInt8) {
    return kInvalidArgument;
  }
  return Enqueue(comm, stream, 2, sent, [=] {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, receive, static_cast<int>(sent), MPI_BYTE,
                  comm->ranks);
  });
}

Result ncclBroadcast(const void* send, void* receive, size_t count, DataType type, int root,
                     Comm* comm, void* stream) {
  if (send != receive || type != kInt8) return kInvalidArgument;
  return Enqueue(comm, stream, 3, count,
                 [=] { MPI_Bcast(receive, static_cast<int>(count), MPI_BYTE, root, comm->ranks); });
}

}  // extern "C"

// The table's functions are these.
#define SYNTRA_FUNCTION(name) \
  static_assert(std::is_same_v<decltype(&name), decltype(&Interface::name)>);
SYNTRA_NCCL_FUNCTIONS(SYNTRA_FUNCTION)
#undef SYNTRA_FUNCTION

}  // namespace syntra::nccl
