// SPDX-License-Identifier: Apache-2.0
// The file STATUS of a run directory: what the run is doing, and a guard against endless restarts.
// A job that dies at the same place each time, requeued by its scheduler, would burn a cluster's
// time; after three starts that got nowhere the fourth refuses with Error(kDiverged).
#pragma once

#include <cstdint>

#include "base/file.h"

namespace syntra {

enum class Ending { kDone, kStopped, kOutOfTime };

class RunStatus {
 public:
  static constexpr int kMaxStartsWithoutProgress = 3;

  // Rank 0 only, under the run's lock.
  explicit RunStatus(const Path& run_directory) : path_(run_directory / "STATUS") {}

  // Whether the run ended in order at `step`, with nothing left to do.
  bool IsDone(int64_t step) const;
  // The run starts from the checkpoint at `step`. Throws Error(kDiverged) if it has started there
  // kMaxStartsWithoutProgress times and neither saved a later checkpoint nor ended in order.
  void Start(int64_t step);
  // A checkpoint at `step` was saved. Saving again at the start step is not progress. This and Stop
  // only warn if they fail: neither a full disk nor a file that cannot be read may end a run that
  // trains.
  void Progress(int64_t step);
  // The run ended in order. Without time enough to get on from its start, it would start again and
  // again: that counts as a start without progress.
  void Stop(int64_t step, Ending ending);

 private:
  void Write(const char* state, int64_t step, int64_t starts);
  void WriteOrWarn(const char* state, int64_t step, int64_t starts);

  Path path_;
};

}  // namespace syntra
