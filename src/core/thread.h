// SPDX-License-Identifier: Apache-2.0
// The one thread pool: OpenMP's, which oneDNN shares. Work is split by index ranges that depend
// only on the count and the number of threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "base/divide.h"

namespace syntra {

// Processors that this process may run on.
inline int ProcessorCount() { return omp_get_num_procs(); }
inline int ThreadCount() { return omp_get_max_threads(); }
// The index of the calling thread in its team; below ThreadCount().
inline int ThreadIndex() { return omp_get_thread_num(); }
inline void SetThreadCount(int count) { omp_set_num_threads(count); }

// Calls body(begin, end) on disjoint ranges that cover [0, count); each range but the last has a
// multiple of `grain` indices. Runs inline when there is too little work or when already parallel.
// `body` must not throw.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  const int64_t blocks = DivideUp(count, grain);
  const int64_t threads = omp_in_parallel() ? 1 : std::min<int64_t>(ThreadCount(), blocks);
  if (threads <= 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    const int64_t begin = blocks * thread / team * grain;
    const int64_t end = std::min(count, blocks * (thread + 1) / team * grain);
    if (begin < end) body(begin, end);
  }
}

// Calls body(i) for each i in [0, count). Each thread first takes its own share of neighbouring
// indices, whose operands are likely in its caches, then what slower threads have left of their
// shares. For tasks of tens of microseconds and more. `body` must not throw.
template <typename Body>
void ParallelTasks(int64_t count, const Body& body) {
  constexpr int64_t kMostShares = 128;
  const int64_t threads = omp_in_parallel() ? 1 : std::min<int64_t>(ThreadCount(), count);
  if (threads <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  const int64_t shares = std::min(threads, kMostShares);
  std::array<std::atomic<int64_t>, kMostShares> next;
  for (int64_t share = 0; share < shares; ++share) next[share] = count * share / shares;
#pragma omp parallel num_threads(static_cast <int>(threads))
  for (int64_t visited = 0; visited < shares; ++visited) {
    const int64_t share = (omp_get_thread_num() + visited) % shares;
    const int64_t end = count * (share + 1) / shares;
    for (int64_t i = next[share]++; i < end; i = next[share]++) body(i);
  }
}

}  // namespace syntra
