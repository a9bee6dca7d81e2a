// embedding: rows of a table. embedding_grad: dtable[v] = sum of dy over the positions with id v,
// in position order. The positions are sorted by id, stably and without atomics on floats: each
// chunk of positions counts its ids, the counts give every (chunk, id) its place, and within a
// chunk a position's rank is the number of equal ids before it.
#include "kernels/cuda/rows.h"
#include "kernels/operands.h"

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

// Positions of a chunk; one block ranks them.
constexpr int kChunk = 1024;

// Where the positions of each id are, sorted: `order` from `first[id]` to `first[id + 1]`.
struct SortedPositions {
  const int32_t* ids;
  int64_t positions, vocabulary;
  int32_t* counts;  // [chunks, vocabulary]: how many of an id; then, before which place they begin
  int32_t* first;   // [vocabulary + 1]
  int32_t* order;   // [positions]

  __host__ __device__ int64_t chunks() const { return (positions + kChunk - 1) / kChunk; }
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

// A chunk's ids in shared memory, and for one of them how many equal ones lie before and in all.
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

// The first position of an id in its chunk writes how many there are.
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

// An id's counts become the number of its positions in the chunks before; first[id] their total.
__global__ void SumChunksKernel(SortedPositions sorted) {
  const int64_t step = BlockCount() * ThreadCount();
  for (int64_t id = BlockIndex() * ThreadCount() + ThreadIndex(); id < sorted.vocabulary;
       id += step) {
    int32_t total = 0;
    for (int64_t chunk = 0; chunk < sorted.chunks(); ++chunk) {
      int32_t& count = sorted.counts[chunk * sorted.vocabulary + id];
      const int32_t here = count;
      count = total;
      total += here;
    }
    sorted.first[id] = total;
  }
}

struct ScanStorage {
  int32_t total[kMostThreads];
};

// The totals of all ids become the places where they begin: one block, a run of ids a thread.
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

template <typename T>
struct SumRows {
  SortedPositions sorted;
  const T* dy;
  float* dtable;
  int64_t width;
  bool accumulate;

  __device__ void operator()(int64_t id, int64_t column, int count) const {
    Eight sum = {};
    for (int32_t i = sorted.first[id]; i < sorted.first[id + 1]; ++i) {
      const Eight row = LoadEight(dy + sorted.order[i] * width + column, count);
#pragma unroll
      for (int k = 0; k < kEight; ++k) sum[k] += row[k];
    }
    StoreResult(sum, dtable + id * width + column, count, accumulate);
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
  if (!IsActivation(y) || !IsF32(call.inputs[1])) return std::nullopt;
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
  if (!IsActivation(dy) || !IsF32(call.outputs[0])) return std::nullopt;
  SortedPositions shape = {};
  shape.positions = dy.shape.rows();
  shape.vocabulary = call.outputs[0].shape[0];
  const size_t counts = AlignUp(shape.chunks() * shape.vocabulary * sizeof(int32_t));
  const size_t first = AlignUp((shape.vocabulary + 1) * sizeof(int32_t));
  BoundKernel kernel;
  kernel.accumulates = true;
  kernel.workspace_bytes = counts + first + AlignUp(shape.positions * sizeof(int32_t));
  kernel.run = [=, accumulate = Accumulates(call, 0)](const KernelArguments& arguments) {
    SortedPositions sorted = shape;
    sorted.ids = Input<int32_t>(arguments, 0);
    sorted.counts = reinterpret_cast<int32_t*>(arguments.workspace);
    sorted.first = reinterpret_cast<int32_t*>(arguments.workspace + counts);
    sorted.order = reinterpret_cast<int32_t*>(arguments.workspace + counts + first);
    Sort(arguments, sorted);
    WithActivation(dy.dtype, [&](auto type) {
      using T = decltype(type);
      Rowwise(arguments, sorted.vocabulary, dy.shape[-1],
              SumRows<T>{sorted, Input<T>(arguments, 1), Output<float>(arguments, 0), dy.shape[-1],
                         accumulate});
    });
  };
  return kernel;
}

}  // namespace syntra
