// SPDX-License-Identifier: Apache-2.0
// What surrounds the training of a run on one rank: its directory, who owns it, what it was asked
// for, and what identifies it.
#pragma once

#include <optional>
#include <string>

#include "configs/schema/config.pb.h"
#include "dist/communicator.h"
#include "kernels/backend.h"
#include "train/event_file.h"
#include "train/metrics_log.h"
#include "train/preflight.h"
#include "train/progress.h"
#include "train/requests.h"
#include "train/run_directory.h"
#include "train/run_lock.h"
#include "train/run_status.h"
#include "train/snapshot.h"
#include "train/watchdog.h"

namespace syntra {

// Rank 0 also owns the directory: its lock, its status, its metrics; and it draws the progress.
struct Chief {
  explicit Chief(const RunDirectory& directory) : lock(directory.root), status(directory.root) {}
  RunLock lock;  // checked before anything is written
  RunStatus status;
  // Opened when it is known at which step the run stands.
  std::optional<MetricsLog> metrics;
  std::optional<EventFile> events;
  std::optional<Progress> progress;

  // Numbers of a step or an evaluation, for programs and for TensorBoard.
  void Record(int64_t step, const NamedValues& values);
};

struct RunContext {
  // Takes the directory; collective. The preflight's warnings go to the run's log. Throws
  // Error(kBusy) on rank 0 if another run has the directory.
  RunContext(const Config& config, Communicator& ranks, Backend& backend, Watchdog& watchdog,
             PassedPreflight preflight);

  bool is_chief() const { return chief.has_value(); }
  // Whether any rank was asked to stop; collective.
  bool AnyRankStops();
  // For tests: as if this rank had been asked to stop, where the failpoint is set.
  void MaybeAskToStop(const char* failpoint, int64_t step) const;

  const Config& config;
  Communicator& ranks;
  Backend& backend;
  Watchdog& watchdog;
  RunDirectory directory;
  std::optional<Chief> chief;
  std::optional<Requests> requests;
  RunIdentity identity;
  // Open from before the run prunes it until the run has its parameters.
  std::optional<InitialModel> initial;
};

}  // namespace syntra
