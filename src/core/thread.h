// SPDX-License-Identifier: Apache-2.0
// The one thread pool: OpenMP's, which oneDNN shares. Work is split by index ranges that depend
// only on the count and the number of threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "base/divide.h"
#include "base/error.h"

namespace syntra {

// Processors that this process may run on.
inline int ProcessorCount() { return omp_get_num_procs(); }
// The threads of a team that the calling thread makes, at most.
inline int ThreadCount() { return std::min(omp_get_max_threads(), omp_get_thread_limit()); }
// The index of the calling thread in its team; below ThreadCount().
inline int ThreadIndex() { return omp_get_thread_num(); }
// From now on teams of the calling thread have `count` threads or, if that is less, as many as
// OMP_THREAD_LIMIT allows; OMP_DYNAMIC and OMP_MAX_ACTIVE_LEVELS make none smaller.
inline void SetThreadCount(int count) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(1);
  omp_set_num_threads(count);
}

// Keeps, of the exceptions that a team's threads throw, the one of the lowest index, since none may
// leave a parallel region. Errors have the contexts of the thread that waits for the team.
class FirstException {
 public:
  template <typename Body>
  void Catch(int64_t index, const Body& body) {
    try {
      contexts_.Call(body);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (exception_ && index_ < index) return;
      index_ = index;
      exception_ = std::current_exception();
    }
  }
  // Call it after the region.
  void Rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  const LentErrorContexts contexts_;
  std::mutex mutex_;
  int64_t index_ = 0;
  std::exception_ptr exception_;
};

// Calls body(begin, end) on disjoint ranges that cover [0, count); each range but the last has a
// multiple of `grain` indices. Runs inline when there is too little work or when already parallel.
// What `body` throws is thrown here once all threads are done.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  const int64_t blocks = DivideUp(count, grain);
  const int64_t threads = omp_in_parallel() ? 1 : std::min<int64_t>(ThreadCount(), blocks);
  if (threads <= 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  FirstException first;
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
    const int64_t begin = blocks * thread / team * grain;
    const int64_t end = std::min(count, blocks * (thread + 1) / team * grain);
    if (begin < end) first.Catch(begin, [&] { body(begin, end); });
  }
  first.Rethrow();
}

// Calls body(i) for each i in [0, count). Each thread first takes its own share of neighbouring
// indices, whose operands are likely in its caches, then what slower threads have left of their
// shares. For tasks of tens of microseconds and more. Throws as ParallelFor.
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
  FirstException first;
#pragma omp parallel num_threads(static_cast <int>(threads))
  for (int64_t visited = 0; visited < shares; ++visited) {
    const int64_t share = (omp_get_thread_num() + visited) % shares;
    const int64_t end = count * (share + 1) / shares;
    for (int64_t i = next[share]++; i < end; i = next[share]++) {
      first.Catch(i, [&] { body(i); });
    }
  }
  first.Rethrow();
}

}  // namespace syntra
