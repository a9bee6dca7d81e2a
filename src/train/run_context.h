// SPDX-License-Identifier: Apache-2.0
// The surroundings of a run's training on one rank: its directory and the directory's owner,
// requests to it, and its identity.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "kernels/backend.h"
#include "run/progress.h"
#include "run/requests.h"
#include "run/run_lock.h"
#include "run/run_status.h"
#include "run/trace.h"
#include "run/watchdog.h"
#include "train/preflight.h"
#include "train/run_directory.h"
#include "train/run_records.h"
#include "train/snapshot.h"

namespace syntra {

// Rank 0 also owns the directory: its lock, its status, its records; and it draws the progress.
struct Chief {
  explicit Chief(const RunDirectory& directory) : lock(directory.root), status(directory.root) {}
  RunLock lock;  // checked before anything is written
  RunStatus status;
  // Absent until it is known at which step the run stands, and that it may go on from there
  // (Trainer::OpenRecords). Every hook finds them when it starts.
  std::optional<RunRecords> records;
  std::optional<Progress> progress;
};

// What a rank trains with. All outlive its runs.
struct RankContext {
  Communicator& ranks;  // with the others; sums their gradients
  Backend& backend;     // of its own
  Watchdog& watchdog;
};

struct RunContext : RankContext {
  // Takes the directory; collective. The preflight's warnings go to the run's log. Throws
  // Error(kLocked) on rank 0 if another run has the directory.
  RunContext(const Config& config, const RankContext& rank, PassedPreflight preflight);

  bool is_chief() const { return chief.has_value(); }
  // Whether any rank was asked to stop; collective.
  bool AnyRankStops();
  // For tests: if the failpoint is set, behaves as if this rank had been asked to stop.
  void MaybeAskToStop(const char* failpoint, int64_t step) const;

  Clock::time_point started = Clock::now();  // of this process's part of the run, since a rollback
  const Config& config;
  RunDirectory directory;
  std::vector<std::string> hosts;  // of each rank
  std::vector<std::string> cpus;   // that each rank computes on (base/host.h)
  std::optional<Chief> chief;
  std::optional<Requests> requests;
  RunIdentity identity;
  std::shared_ptr<const TrainingPlan> plan;  // as the preflight made it
  // Opened before the run can prune it, and kept open until the run has its parameters.
  std::optional<InitialModel> initial;
  // The trace that is being recorded (train.profile); null: none.
  std::shared_ptr<Trace> trace;
};

// The batches of an evaluation under the watchdog: each is a phase, whose time begins anew whenever
// the ranks meet. The time before the first batch is a phase that is not measured.
class WatchedBatches {
 public:
  WatchedBatches(RunContext& run, int64_t step);
  // To be called before each batch; collective. Returns whether any rank was asked to stop; then
  // there is no next batch.
  bool Stop();

 private:
  RunContext& run_;
  int64_t step_;
  std::optional<Watchdog::Phase> phase_;
};

}  // namespace syntra
