// SPDX-License-Identifier: Apache-2.0
// Ends a process that hangs. MPI waits for ever for a rank that is frozen or stuck, and a job that
// does nothing holds its machines until someone looks. The process is in some phase at any time,
// and each phase has a limit (README.md has a table of them). When it is over, a thread writes
// which rank hangs in what, and the stacks of all threads, to the rank's log, tells which ranks did
// not even report, and exits with code 7 (kPeerLost).
//
// All ranks must be in the same kind of phase together: one that waits in a step while another
// saves would be taken for hanging.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "base/file.h"

namespace syntra {

enum class RunPhase : int {
  kInit,  // until the first other phase
  kPrepare,
  kLoad,
  kStep,
  kEvaluation,  // a batch of one
  kCompare,
  kSave,
  kBetween,  // in none of the others
  kEnd,
};

// Seconds that each phase may take. The environment variable SYNTRA_WATCHDOG, a comma-separated
// list of NAME=SECONDS, replaces some; the names are those of the fields.
struct WatchdogLimits {
  double init = 120;
  double prepare = 600;  // between two calls of Alive()
  double load = 600;     // and the time for its bytes
  // max(step, step_medians x median of the last steps). Until three steps are measured nothing is
  // known about this model on this machine but what it should take at best: ExpectStep.
  double step = 60;
  double step_medians = 20;
  double first_steps = 1800;
  double evaluation = 60;  // as for steps, by the median of the evaluations' batches
  double compare = 120;
  double save = 300;  // and the time for its bytes
  double between = 60;
  double end = 120;
  // How long an expired rank waits for the reports of the others.
  double gather = 2;
};

struct WatchdogOptions {
  int rank = 0;
  int ranks = 1;
  // Where ranks leave their hang reports before there is a run directory: a directory of the job on
  // this machine. Empty: they do not.
  Path job_directory;
  WatchdogLimits limits;
};

class Watchdog {
 public:
  // The phase is kInit. Start it after any fork. Throws Error(kConfig) for a SYNTRA_WATCHDOG that
  // does not read as above.
  explicit Watchdog(WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // From now on reports go to the rank's log in `directory`, which all ranks share, and lie beside
  // it. Removes this rank's report of an earlier run.
  void ReportTo(const Path& directory, int rank, int ranks);

  // The run is in a phase while one of these lives. They nest; the outer phase's time starts anew
  // when the inner one ends. Made and destroyed by one thread. `bytes`: what the phase reads or
  // writes, for the limits of kLoad and kSave.
  class Phase {
   public:
    Phase(Watchdog& watchdog, RunPhase phase, int64_t step = 0, double bytes = 0);
    ~Phase();
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;

   private:
    Watchdog& watchdog_;
    RunPhase outer_;
    int64_t outer_step_;
    double outer_bytes_;
    double start_;
  };

  // What the phase is doing, for the report: "waiting for data", "all-reduce". A string literal.
  // The phase's time goes on.
  void Activity(const char* activity);

  // The current phase makes progress: its time starts anew.
  void Alive();

  // What a step takes at best, where that is known: the first ones may then take 300 s and a
  // hundred times as long, at most first_steps.
  void ExpectStep(double seconds);

  // Seconds that a phase which handles so many bytes may take now.
  double Allowed(RunPhase phase, double bytes = 0);

 private:
  void Enter(RunPhase phase, int64_t step, double bytes);
  double AllowedLocked(RunPhase phase, double bytes) const;
  double AllowedByMedian(const std::deque<double>& seconds, double least) const;
  void Watch();
  std::string Describe() const;
  [[noreturn]] void Expire(const std::string& description) const;
  void WriteSummary(int log) const;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  WatchdogOptions options_;
  Path reports_;  // directory of the hang reports; empty: there are none
  Path log_;      // empty: stderr
  RunPhase phase_ = RunPhase::kInit;
  int64_t step_ = 0;
  double bytes_ = 0;
  const char* activity_ = "";
  // Time that this process was seen running since the phase began. A suspended job (Slurm gang
  // scheduling, ^Z) does not age.
  double waited_ = 0;
  double first_steps_;
  std::deque<double> step_seconds_, evaluation_seconds_;
  std::thread thread_;
};

}  // namespace syntra
