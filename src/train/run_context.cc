// SPDX-License-Identifier: Apache-2.0
#include "train/run_context.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/host.h"
#include "base/log.h"
#include "base/staged_file.h"
#include "base/text.h"
#include "run/failpoint.h"

namespace syntra {
namespace {

// Seconds left of train.stop_after_minutes, which counts all runs of a command together; 0 if there
// is no limit.
double SecondsUntilStop(double minutes) {
  static const double first_run = MonotonicSeconds();
  if (minutes == 0) return 0;
  return std::max(60 * minutes - (MonotonicSeconds() - first_run), 1e-9);
}

}  // namespace

RunContext::RunContext(const Config& config, const RankContext& rank, PassedPreflight preflight)
    : RankContext(rank),
      config(config),
      directory{config.train().directory()},
      hosts(AllGatherLines(ranks, HostName())),
      cpus(AllGatherLines(ranks, AllowedCpus())),
      plan(std::move(preflight.plan)),
      initial(std::move(preflight.initial)) {
  if (ranks.rank() == 0) {
    // No checkpoint is safer than the directory that it is in.
    CreateDirectoriesDurably(directory.root);
    chief.emplace(directory);
    CreateDirectories(directory.logs());
    for (const Path& place :
         {directory.root, directory.logs(), directory.predictions(), directory.submission()}) {
      RemoveTemporariesIn(place);
    }
    identity.run_id = RunIdOf(directory);
  }
  BroadcastText(ranks, &identity.run_id);
  RequestOptions asked{.run_directory = directory.root,
                       .log_directory = directory.logs(),
                       .takes_files = is_chief(),
                       .seconds = SecondsUntilStop(config.train().stop_after_minutes())};
  // By one clock, that of the host of rank 0.
  if (is_chief()) asked.job_seconds = SecondsLeftInJob();
  requests.emplace(asked);
  ranks.Barrier();
  SetUpLogging(ranks.rank(), directory.logs());
  watchdog.ReportTo(directory.logs(), ranks.rank(), hosts);
  backend.KeepChoices(directory.root);
  identity.config = config;
  identity.world_size = ranks.size();
  for (const std::string& warning : preflight.warnings) Log().warn("{}", warning);
  if (std::isfinite(asked.job_seconds)) {
    Log().info("the job ends in {}; the run saves and stops before",
               HumanDuration(asked.job_seconds));
  }
}

bool RunContext::AnyRankStops() { return AnyRank(ranks, requests->Stop()); }

void RunContext::MaybeAskToStop(const char* failpoint, int64_t step) const {
  if (Failpoint(failpoint, step, ranks.rank(), ranks.size())) raise(SIGUSR1);
}

WatchedBatches::WatchedBatches(RunContext& run, int64_t step) : run_(run), step_(step) {
  phase_.emplace(run_.watchdog, RunPhase::kEvaluation, step_);
  phase_->DoNotMeasure();
}

bool WatchedBatches::Stop() {
  phase_.emplace(run_.watchdog, RunPhase::kEvaluation, step_);
  const bool stops = run_.AnyRankStops();
  if (stops) phase_->DoNotMeasure();
  return stops;
}

}  // namespace syntra
