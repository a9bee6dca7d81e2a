// SPDX-License-Identifier: Apache-2.0
// embedding: rows of a table. embedding_grad: dtable[v] = sum of dy over the positions with id v,
// in position order. The positions are sorted by id with a stable counting sort: each chunk of
// positions counts its ids, prefix sums of the counts give the place of every (chunk, id), and
// within a chunk a position's rank is the number of equal ids before it. The rows of the sorted
// positions are then added in runs of equal length, so that a frequent id is spread over several
// threads. Parts of ids that extend over several runs are added afterwards.
#include "base/divide.h"
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"
#include "kernels/workspace.h"

namespace syntra {
namespace {

using namespace gpu;

template <typename T>
struct Embedding {
  const int32_t* ids;
  const float* table;
  T* y;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t row, int64_t column, int count) const {
    const Eight value = LoadEight(table + ids[row] * width + column, count);
    StoreResult(value, y + row * width + column, count, accumulate);
  }
};

// The number of positions of a chunk. One block ranks them.
constexpr int kChunk = 1024;

// The positions sorted by id. Those of an id are `order` from `first[id]` to `first[id + 1]`.
struct SortedPositions {
  const int32_t* ids;
  int64_t positions, vocabulary;
  int32_t* counts;  // [chunks, vocabulary]: the number of an id; later, their place in `order`
  int32_t* first;   // [vocabulary + 1]
  int32_t* order;   // [positions]

  __host__ __device__ int64_t chunks() const { return DivideUp(positions, kChunk); }
};

struct RankStorage {
  int32_t ids[kChunk];
};

struct ZeroCounts {
  int32_t* counts;
  __device__ void operator()(int64_t i, int count) const {
    for (int k = 0; k < count; ++k) counts[i + k] = 0;
  }
};

// A chunk's ids in shared memory. For an id it counts the equal ones before it and in all.
struct Rank {
  int32_t before, all;
};
__device__ Rank RankOf(const RankStorage& shared, int count, int at) {
  Rank rank{0, 0};
  for (int i = 0; i < count; ++i) {
    const bool equal = shared.ids[i] == shared.ids[at];
    rank.all += equal;
    rank.before += equal && i < at;
  }
  return rank;
}

__device__ int LoadChunk(const SortedPositions& sorted, RankStorage& shared) {
  const int64_t first = BlockIndex() * kChunk, left = sorted.positions - first;
  const int count = static_cast<int>(left < kChunk ? left : kChunk);
  for (int i = ThreadIndex(); i < count; i += ThreadCount()) shared.ids[i] = sorted.ids[first + i];
  SyncThreads();
  return count;
}

// The thread of an id's first position in the chunk writes the count.
__global__ void CountKernel(SortedPositions sorted) {
  auto& shared = Shared<RankStorage>();
  const int count = LoadChunk(sorted, shared);
  for (int i = ThreadIndex(); i < count; i += ThreadCount()) {
    const Rank rank = RankOf(shared, count, i);
    if (rank.before == 0) {
      sorted.counts[BlockIndex() * sorted.vocabulary + shared.ids[i]] = rank.all;
    }
  }
}

// Replaces an id's counts by the number of its positions in earlier chunks, and sets first[id] to
// their total.
__global__ void SumChunksKernel(SortedPositions sorted) {
  ForThreadItems(sorted.vocabulary, [&](int64_t id) {
    int32_t total = 0;
    for (int64_t chunk = 0; chunk < sorted.chunks(); ++chunk) {
      int32_t& count = sorted.counts[chunk * sorted.vocabulary + id];
      const int32_t here = count;
      count = total;
      total += here;
    }
    sorted.first[id] = total;
  });
}

struct ScanStorage {
  int32_t total[kMostThreads];
};

// Replaces the totals of all ids by the places where they begin. One block, a range of ids per
// thread.
__global__ void StartsKernel(SortedPositions sorted) {
  auto& shared = Shared<ScanStorage>();
  const int64_t vocabulary = sorted.vocabulary;
  const int64_t begin = vocabulary * ThreadIndex() / ThreadCount();
  const int64_t end = vocabulary * (ThreadIndex() + 1) / ThreadCount();
  int32_t sum = 0;
  for (int64_t id = begin; id < end; ++id) sum += sorted.first[id];
  shared.total[ThreadIndex()] = sum;
  SyncThreads();
  int32_t place = 0;
  for (int thread = 0; thread < ThreadIndex(); ++thread) place += shared.total[thread];
  for (int64_t id = begin; id < end; ++id) {
    const int32_t here = sorted.first[id];
    sorted.first[id] = place;
    place += here;
  }
  if (ThreadIndex() == ThreadCount() - 1) sorted.first[vocabulary] = place;
}

__global__ void PlaceKernel(SortedPositions sorted) {
  auto& shared = Shared<RankStorage>();
  const int count = LoadChunk(sorted, shared);
  for (int i = ThreadIndex(); i < count; i += ThreadCount()) {
    const int32_t id = shared.ids[i];
    const int32_t place = sorted.first[id] + sorted.counts[BlockIndex() * sorted.vocabulary + id] +
                          RankOf(shared, count, i).before;
    sorted.order[place] = static_cast<int32_t>(BlockIndex() * kChunk + i);
  }
}

// The number of sorted positions in a run.
constexpr int64_t kRun = 64;
inline int64_t Runs(int64_t positions) { return DivideUp(positions, kRun); }

// The results of the runs: sums of ids that are within one run, and parts of the others.
struct RowSums {
  SortedPositions sorted;
  float* dtable;
  float *heads, *tails;  // [runs, width]: of an id that began in an earlier run; that continues
  int64_t width;
  bool accumulate;
};

template <typename T>
struct SumRun {
  RowSums sums;
  const T* dy;

  __device__ void Put(const Eight& sum, int64_t run, int32_t id, int64_t column, int count) const {
    const int64_t begin = run * kRun;
    const bool begins = sums.sorted.first[id] >= begin;
    const bool ends = sums.sorted.first[id + 1] <= begin + kRun;
    if (begins && ends) {
      StoreResult(sum, sums.dtable + id * sums.width + column, count, sums.accumulate);
    } else {
      StoreEight(sum, (begins ? sums.tails : sums.heads) + run * sums.width + column, count);
    }
  }

  __device__ void operator()(int64_t run, int64_t column, int count) const {
    const SortedPositions& sorted = sums.sorted;
    const int64_t begin = run * kRun, left = sorted.positions - begin;
    const int64_t end = begin + (left < kRun ? left : kRun);
    Eight sum = {};
    for (int64_t place = begin; place < end; ++place) {
      const int32_t position = sorted.order[place], id = sorted.ids[position];
      sum += LoadEight(dy + position * sums.width + column, count);
      if (place + 1 == end || place + 1 == sorted.first[id + 1]) {
        Put(sum, run, id, column, count);
        sum = {};
      }
    }
  }
};

// Finishes the ids that no run has finished: those without positions and those in several runs.
struct FinishRows {
  RowSums sums;

  __device__ void operator()(int64_t id, int64_t column, int count) const {
    const int64_t begin = sums.sorted.first[id], end = sums.sorted.first[id + 1];
    if (begin == end && sums.accumulate) return;
    const int64_t first = begin / kRun, last = (end - 1) / kRun;
    if (begin < end && first == last) return;
    Eight sum = {};
    if (begin < end) {
      sum = LoadEight(sums.tails + first * sums.width + column, count);
      for (int64_t run = first + 1; run <= last; ++run) {
        sum += LoadEight(sums.heads + run * sums.width + column, count);
      }
    }
    StoreResult(sum, sums.dtable + id * sums.width + column, count, sums.accumulate);
  }
};

void Sort(const KernelArguments& arguments, const SortedPositions& sorted) {
  const int64_t chunks = sorted.chunks();
  Elementwise(arguments, chunks * sorted.vocabulary, ZeroCounts{sorted.counts});
  Launch(arguments, {chunks, kThreads, sizeof(RankStorage)}, CountKernel, sorted);
  Launch(arguments, GridFor(sorted.vocabulary), SumChunksKernel, sorted);
  Launch(arguments, {1, kMostThreads, sizeof(ScanStorage)}, StartsKernel, sorted);
  Launch(arguments, {chunks, kThreads, sizeof(RankStorage)}, PlaceKernel, sorted);
}

}  // namespace

std::optional<BoundKernel> cuda_embedding(const OpCall& call) {
  const TensorType y = call.outputs[0];
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.run = [y, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    WithActivation(y.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, y.shape.rows(), y.shape[-1],
              Embedding<T>{Input<int32_t>(arguments, 0), Input<float>(arguments, 1),
                           Output<T>(arguments, 0), y.shape[-1], accumulate});
    });
  };
  return kernel;
}

std::optional<BoundKernel> cuda_embedding_grad(const OpCall& call) {
  const TensorType dy = call.inputs[1];
  SortedPositions shape = {};
  shape.positions = dy.shape.rows();
  shape.vocabulary = call.outputs[0].shape[0];
  if (!FitInt({shape.positions, shape.vocabulary})) return std::nullopt;
  const int64_t width = dy.shape[-1], runs = Runs(shape.positions);
  WorkspaceLayout layout;
  const size_t counts = layout.Place(shape.chunks() * shape.vocabulary * sizeof(int32_t));
  const size_t first = layout.Place((shape.vocabulary + 1) * sizeof(int32_t));
  const size_t order = layout.Place(shape.positions * sizeof(int32_t));
  const size_t heads = layout.Place(runs * width * sizeof(float));
  const size_t tails = layout.Place(runs * width * sizeof(float));
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = layout.bytes();
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    SortedPositions sorted = shape;
    sorted.ids = Input<int32_t>(arguments, 0);
    sorted.counts = reinterpret_cast<int32_t*>(arguments.workspace + counts);
    sorted.first = reinterpret_cast<int32_t*>(arguments.workspace + first);
    sorted.order = reinterpret_cast<int32_t*>(arguments.workspace + order);
    Sort(arguments, sorted);
    const RowSums sums{sorted,
                       Output<float>(arguments, 0),
                       reinterpret_cast<float*>(arguments.workspace + heads),
                       reinterpret_cast<float*>(arguments.workspace + tails),
                       width,
                       accumulate};
    WithActivation(dy.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, runs, width, SumRun<T>{sums, Input<T>(arguments, 1)});
    });
    Rowwise(arguments, sorted.vocabulary, width, FinishRows{sums});
  };
  return kernel;
}

}  // namespace syntra
