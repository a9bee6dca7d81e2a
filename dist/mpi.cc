// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "core/thread.h"
#include "dist/mpi_check.h"
#include "dist/tree_sum.h"

namespace syntra {

namespace internal {
void MpiFailed(const char* call, int error) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(error, text, &length);
  Fail(ExitCode::kPeerLost, "{} failed: {}", call, text);
}
}  // namespace internal

namespace {

// Work below this is not worth waking threads for.
constexpr int64_t kGrainBytes = 64 << 10;

// Shorter vectors do not repay what it costs to expose them.
constexpr int64_t kExposedBytes = int64_t{1} << 20;

// Elements of a device's vector that pass through the host at a time: 16 MiB of page-locked memory.
constexpr int64_t kHostPiece = int64_t{4} << 20;

void Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  ParallelFor(bytes, kGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

void Sum(std::span<const float* const> sources, float* out, int64_t count) {
  ParallelFor(count, kGrainBytes / 4, [&](int64_t begin, int64_t end) {
    std::vector<const float*> parts(sources.begin(), sources.end());
    for (const float*& part : parts) part += begin;
    TreeSum<float>(parts, out + begin, end - begin);
  });
}

// Of a chunk that has a piece for each of `count` ranks or hosts.
int64_t PieceBytes(int64_t chunk_bytes, int count) {
  return AlignUp(std::max<int64_t>(chunk_bytes / count, kSmallestPieceBytes));
}

float* AsFloats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }
const float* AsFloats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }

// Whether other hosts may reach this one by IPv4.
bool HasIpv4() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const bool reachable = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    found |= reachable && each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET;
  }
  freeifaddrs(first);
  return found;
}

}  // namespace

MpiCommunicator::MpiCommunicator(int* argc, char*** argv, const MpiOptions& options) {
  int initialized = 0;
  SYNTRA_MPI(MPI_Initialized(&initialized));
  if (!initialized) {
    // Open MPI 5.0.7 may find no connection between hosts that have IPv6 addresses, too.
    if (HasIpv4()) setenv("OMPI_MCA_btl_tcp_disable_family", "6", /*overwrite=*/0);
    int provided = MPI_THREAD_SINGLE;
    SYNTRA_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
    owns_mpi_ = true;
    if (provided < MPI_THREAD_FUNNELED) {
      Fail(ExitCode::kResources,
           "this MPI does not allow threads (level {}); use an Open MPI built with thread support "
           "(MPI_THREAD_FUNNELED)",
           provided);
    }
  }
  SYNTRA_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world_));
  // Communicators that are split off inherit it.
  SYNTRA_MPI(MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN));
  SYNTRA_MPI(MPI_Comm_rank(world_, &rank_));
  SYNTRA_MPI(MPI_Comm_size(world_, &size_));
  Connect(options);
}

MpiCommunicator::~MpiCommunicator() {
  shared_.reset();
  for (MPI_Comm* communicator : {&group_, &peers_, &world_}) {
    if (*communicator != MPI_COMM_NULL) MPI_Comm_free(communicator);
  }
  if (owns_mpi_) MPI_Finalize();
}

int MpiCommunicator::FindRanksPerGroup(int wanted) {
  MPI_Comm host = MPI_COMM_NULL;
  SYNTRA_MPI(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host));
  SYNTRA_MPI(MPI_Comm_rank(host, &rank_on_host_));
  SYNTRA_MPI(MPI_Comm_size(host, &ranks_on_host_));
  int first = rank_;
  SYNTRA_MPI(MPI_Bcast(&first, 1, MPI_INT, 0, host));
  SYNTRA_MPI(MPI_Comm_free(&host));

  // Groups must be equal blocks of neighbours. If there are several, each must have a power of two
  // of ranks: otherwise summing inside groups first would not follow the tree over all ranks.
  const int block = wanted > 0 ? wanted : ranks_on_host_;
  const bool tree = block == size_ || (size_ % block == 0 && std::has_single_bit(unsigned(block)));
  const int begin = rank_ / block * block;
  int fits = tree && first <= begin && begin + block <= first + ranks_on_host_;
  int smallest = block, largest = block;
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, world_));
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &smallest, 1, MPI_INT, MPI_MIN, world_));
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_INT, MPI_MAX, world_));
  return fits && smallest == largest ? block : 1;
}

void MpiCommunicator::Connect(const MpiOptions& options) {
  piece_bytes_ = PieceBytes(options.chunk_bytes, size_);
  locals_ = FindRanksPerGroup(options.ranks_per_host);
  if (locals_ > 1) {
    SYNTRA_MPI(MPI_Comm_split(world_, rank_ / locals_, rank_, &group_));
    shared_ = SharedMemory::Create(group_, 2 * piece_bytes_ * size_);
    int usable = shared_ != nullptr;
    SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, world_));
    if (!usable) {
      if (rank_ == 0) {
        Log().warn(
            "the ranks of a host have no shared memory, so they exchange by messages, which is "
            "slower");
      }
      shared_.reset();
      locals_ = 1;
    }
  }
  local_ = rank_ % locals_;
  groups_ = size_ / locals_;
  SYNTRA_MPI(MPI_Comm_split(world_, local_, rank_, &peers_));
  if (groups_ > 1) {
    message_bytes_ = PieceBytes(options.chunk_bytes, groups_);
    sent_ = Buffer(groups_ * message_bytes_, "messages between hosts");
    received_ = Buffer(groups_ * message_bytes_, "messages between hosts");
  }
}

int64_t MpiCommunicator::Chunk::Length(int owner) const {
  return std::clamp<int64_t>(shares.size(owner) - start, 0, piece);
}

std::byte* MpiCommunicator::Slot(int local, int owner, const Chunk& chunk) const {
  return shared_->slot(local) + (turn_ & 1) * size_ * piece_bytes_ + owner * chunk.piece;
}

const std::byte* MpiCommunicator::Readable(int local, int owner, const Chunk& chunk) const {
  if (local == local_) return chunk.At(owner);
  return chunk.exposed ? chunk.exposed->At(local, chunk.At(owner)) : Slot(local, owner, chunk);
}

std::shared_ptr<Exposure> MpiCommunicator::Expose(TensorView view) {
  const auto bytes = static_cast<int64_t>(view.type.bytes());
  if (!view.device->is_host() || locals_ == 1 || bytes < kExposedBytes) return nullptr;
  auto memory =
      PeerMemory::Create(group_, {static_cast<std::byte*>(view.data), static_cast<size_t>(bytes)});
  int usable = memory != nullptr;
  SYNTRA_MPI(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, world_));
  if (!usable) {
    if (rank_ == 0) Log().info("ranks cannot read each other's memory, so sums take copies");
    return nullptr;
  }
  std::erase_if(exposed_, [](const auto& other) { return other.expired(); });
  exposed_.push_back(memory);
  return memory;
}

std::shared_ptr<PeerMemory> MpiCommunicator::FindExposed(std::span<const std::byte> vector) const {
  for (const auto& weak : exposed_) {
    if (auto memory = weak.lock(); memory && memory->Contains(vector)) return memory;
  }
  return nullptr;
}

void MpiCommunicator::Exchange(std::byte* data, const Shares& shares, Halves halves) {
  if (size_ == 1) return;
  const int64_t largest = shares.largest();
  const auto exposed = FindExposed({data, static_cast<size_t>(shares.elements())});
  Chunk chunk{data, shares, 0, static_cast<int64_t>(AlignUp(largest)), exposed.get()};
  // In place a host needs no pieces; only messages have a limit.
  if (!exposed) chunk.piece = std::min(chunk.piece, piece_bytes_);
  if (groups_ > 1) chunk.piece = std::min(chunk.piece, message_bytes_);
  for (; chunk.start < largest; chunk.start += chunk.piece) {
    if (halves.reduces) ReduceChunk(chunk);
    if (halves.gathers) GatherChunk(chunk);
    // A rank writes to a buffer again two chunks later; the barrier of the chunk between tells it
    // that all have read it.
    ++turn_;
  }
  // This rank must not change the vector while others still read it.
  if (exposed) shared_->Barrier();
}

std::vector<int> MpiCommunicator::Lengths(const Chunk& chunk) const {
  std::vector<int> lengths;
  for (int group = 0; group < groups_; ++group) {
    lengths.push_back(static_cast<int>(chunk.Length(group * locals_ + local_)));
  }
  return lengths;
}

std::vector<int> MpiCommunicator::Offsets(const Chunk& chunk) const {
  std::vector<int> offsets;
  for (int group = 0; group < groups_; ++group) {
    offsets.push_back(static_cast<int>(group * chunk.piece));
  }
  return offsets;
}

// Leaves the sum of this rank's piece in place.
void MpiCommunicator::ReduceChunk(const Chunk& chunk) {
  if (locals_ > 1) {
    for (int owner = 0; owner < size_ && !chunk.exposed; ++owner) {
      if (owner % locals_ == local_) continue;
      Copy(Slot(local_, owner, chunk), chunk.At(owner), chunk.Length(owner));
    }
    shared_->Barrier();
  }
  // This rank sums its group's pieces for the owners in its place in every group.
  std::vector<const float*> sources(locals_);
  for (int group = 0; group < groups_; ++group) {
    const int owner = group * locals_ + local_;
    for (int local = 0; local < locals_; ++local) {
      sources[local] = AsFloats(Readable(local, owner, chunk));
    }
    std::byte* out = groups_ > 1 ? sent_.data() + group * chunk.piece : chunk.At(owner);
    Sum(sources, AsFloats(out), chunk.Length(owner) / 4);
  }
  if (groups_ == 1) return;
  // Only what a rank has a share of: a piece of a vector may be of one rank's alone.
  const std::vector<int> theirs = Lengths(chunk), offsets = Offsets(chunk);
  const std::vector<int> own(groups_, static_cast<int>(chunk.Length(rank_)));
  SYNTRA_MPI(MPI_Alltoallv(sent_.data(), theirs.data(), offsets.data(), MPI_BYTE, received_.data(),
                           own.data(), offsets.data(), MPI_BYTE, peers_));
  sources.resize(groups_);
  for (int group = 0; group < groups_; ++group) {
    sources[group] = AsFloats(received_.data() + group * chunk.piece);
  }
  Sum(sources, AsFloats(chunk.At(rank_)), chunk.Length(rank_) / 4);
}

void MpiCommunicator::GatherChunk(const Chunk& chunk) {
  if (groups_ > 1) {
    std::memcpy(sent_.data(), chunk.At(rank_), chunk.Length(rank_));
    const std::vector<int> lengths = Lengths(chunk), offsets = Offsets(chunk);
    SYNTRA_MPI(MPI_Allgatherv(sent_.data(), static_cast<int>(chunk.Length(rank_)), MPI_BYTE,
                              received_.data(), lengths.data(), offsets.data(), MPI_BYTE, peers_));
    for (int group = 0; group < groups_; ++group) {
      const int owner = group * locals_ + local_;
      if (owner == rank_) continue;
      Copy(chunk.At(owner), received_.data() + group * chunk.piece, chunk.Length(owner));
    }
  }
  if (locals_ == 1) return;
  for (int owner = local_; owner < size_ && !chunk.exposed; owner += locals_) {
    Copy(Slot(local_, owner, chunk), chunk.At(owner), chunk.Length(owner));
  }
  shared_->Barrier();
  for (int owner = 0; owner < size_; ++owner) {
    const int local = owner % locals_;
    if (local == local_) continue;
    Copy(chunk.At(owner), Readable(local, owner, chunk), chunk.Length(owner));
  }
}

void MpiCommunicator::ThroughHost(const TensorView& view, int64_t elements,
                                  const std::function<void(TensorView)>& collective) {
  const int64_t count = view.type.shape.size();
  const size_t size = SizeOf(view.type.dtype);
  const size_t most = std::min(elements, count) * size;
  if (staging_.size() < most) staging_ = view.device->AllocateStaging(most, "sums over ranks");
  for (int64_t first = 0; first < count; first += elements) {
    const TensorType type{view.type.dtype, {std::min(elements, count - first)}};
    std::byte* data = static_cast<std::byte*>(view.data) + first * size;
    view.device->CopyOut(staging_.data(), data, type.bytes());
    collective({staging_.data(), type});
    view.device->CopyIn(data, staging_.data(), type.bytes());
  }
}

void MpiCommunicator::ThroughHost(
    const TensorView& view, const Shares& shares,
    const std::function<void(TensorView, const Shares&)>& collective) {
  int64_t first = 0;
  ThroughHost(view, kHostPiece, [&](TensorView piece) {
    const int64_t last = first + piece.type.shape.size();
    collective(piece, shares.Within(first, last));
    first = last;
  });
}

void MpiCommunicator::AllReduceSum(TensorView view) {
  if (!view.device->is_host()) {
    return ThroughHost(view, kHostPiece, [this](TensorView piece) { AllReduceSum(piece); });
  }
  const std::span<float> values = view.As<float>();
  const Shares shares = Shares::Even(values.size_bytes(), size_, Buffer::kAlignment);
  Exchange(reinterpret_cast<std::byte*>(values.data()), shares, {.reduces = true, .gathers = true});
}

void MpiCommunicator::ReduceScatter(TensorView view, const Shares& shares) {
  CheckShares(view, shares);
  if (!view.device->is_host()) {
    return ThroughHost(view, shares,
                       [this](TensorView v, const Shares& s) { ReduceScatter(v, s); });
  }
  const std::span<float> values = view.As<float>();
  Exchange(reinterpret_cast<std::byte*>(values.data()), shares.Times(sizeof(float)),
           {.reduces = true});
}

void MpiCommunicator::AllGather(TensorView view, const Shares& shares) {
  CheckShares(view, shares);
  if (!view.device->is_host()) {
    return ThroughHost(view, shares, [this](TensorView v, const Shares& s) { AllGather(v, s); });
  }
  Exchange(static_cast<std::byte*>(view.data), shares.Times(SizeOf(view.type.dtype)),
           {.gathers = true});
}

void MpiCommunicator::Broadcast(TensorView view, int root) {
  SYNTRA_CHECK(root >= 0 && root < size_, "broadcast of {} from rank {} of {}", ToString(view.type),
               root, size_);
  if (!view.device->is_host()) {
    return ThroughHost(view, view.type.shape.size(), [&](TensorView v) { Broadcast(v, root); });
  }
  // MPI counts are int.
  constexpr int64_t kMost = int64_t{1} << 30;
  const int64_t bytes = view.type.bytes();
  for (int64_t done = 0; done < bytes; done += kMost) {
    const int count = static_cast<int>(std::min(kMost, bytes - done));
    SYNTRA_MPI(MPI_Bcast(static_cast<std::byte*>(view.data) + done, count, MPI_BYTE, root, world_));
  }
}

std::vector<double> MpiCommunicator::AllGather(std::span<const double> values) {
  SYNTRA_CHECK(values.size() < (size_t{1} << 20), "{} values; use the f32 call", values.size());
  std::vector<double> all(values.size() * size_);
  const int count = static_cast<int>(values.size());
  SYNTRA_MPI(
      MPI_Allgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, world_));
  return all;
}

void MpiCommunicator::AllReduceSum(std::span<double> values) {
  TreeSumRows(AllGather(values), values);
}

void MpiCommunicator::AllReduceMax(std::span<double> values) {
  const std::vector<double> all = AllGather(values);
  for (size_t i = 0; i < all.size(); ++i) {
    double& value = values[i % values.size()];
    // A NaN anywhere is the maximum, on all ranks alike.
    if (all[i] > value || std::isnan(all[i])) value = all[i];
  }
}

void MpiCommunicator::Barrier() { SYNTRA_MPI(MPI_Barrier(world_)); }

std::vector<std::string> MpiCommunicator::Gather(std::string_view text) {
  SYNTRA_CHECK(text.size() <= size_t{INT_MAX} / size_, "a text of {} bytes", text.size());
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(rank_ == 0 ? size_ : 0), offsets(lengths.size());
  SYNTRA_MPI(MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, world_));
  int total = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    offsets[i] = total;
    total += lengths[i];
  }
  std::string joined(total, '\0');
  SYNTRA_MPI(MPI_Gatherv(text.data(), length, MPI_CHAR, joined.data(), lengths.data(),
                         offsets.data(), MPI_CHAR, 0, world_));
  std::vector<std::string> texts;
  for (size_t i = 0; i < lengths.size(); ++i)
    texts.push_back(joined.substr(offsets[i], lengths[i]));
  return texts;
}

void MpiCommunicator::Abort(ExitCode code) {
  Log().flush();
  MPI_Abort(world_, static_cast<int>(code));
  std::abort();
}

}  // namespace syntra
