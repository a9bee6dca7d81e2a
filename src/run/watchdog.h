// SPDX-License-Identifier: Apache-2.0
// Ends a process that hangs. MPI waits for ever for a rank that is frozen or stuck, and a job that
// does nothing holds its machines until someone looks.
//
// The process is in exactly one phase at any time, and each phase has a time limit (README.md lists
// them). When a limit has passed, the watchdog's thread writes to the rank's log and to stderr:
// which rank hangs in which phase, the stacks of all threads, and which ranks on which hosts did
// not report. Then it ends the process with code 7 (kPeerLost). That takes at most `gather` + 5 s,
// whatever hangs.
//
// A rank that fails while it writes a checkpoint finishes that first, and leaves a file for the
// others (EndsWith): they wait for it in whatever phase they are.
//
// All ranks must be in the same phase together: a rank that waits in a step while another saves
// would be taken for hanging.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace syntra {

enum class RunPhase : int {
  kInit,  // until the first other phase
  kPrepare,
  kLoad,
  kStep,
  kEvaluation,  // one batch of it
  kCompare,
  kSave,
  kAnswer,   // lines of the input
  kBetween,  // in none of the others
  kEnd,
};

// Seconds that each phase may take. The environment variable SYNTRA_WATCHDOG replaces some of them:
// it is a comma-separated list of NAME=SECONDS, where the names are those of the fields.
struct WatchdogLimits {
  double init = 120;
  double prepare = 600;  // between two calls of Alive(), and 1 s for each 10 MB that it reads
  double load = 600;     // and 1 s for each 10 MB that it reads
  // A step may take max(step, step_medians x median of the last steps). The first three steps, for
  // which there is no median yet, may take first_steps, or less after ExpectStep.
  double step = 60;
  double step_medians = 20;
  double first_steps = 1800;
  double evaluation = 60;  // as `step`, by the median of the evaluations' batches
  double compare = 120;
  double save = 300;    // and 1 s for each 10 MB that it writes
  double answer = 600;  // between two calls of Alive()
  double between = 60;
  double end = 120;
  // How long an expired rank waits for the reports of the others.
  double gather = 2;
};

// `limits`, some of them replaced by what SYNTRA_WATCHDOG says; null or empty: none is. Throws
// Error(kConfig) if it is not such a list.
WatchdogLimits LimitsFrom(const char* text, WatchdogLimits limits);

struct WatchdogOptions {
  int rank = 0;
  int ranks = 1;
  // Where ranks leave their hang reports until there is a run directory: the launcher's directory
  // for the job on this machine. Empty: they leave none.
  Path job_directory;
  WatchdogLimits limits;
};

class Watchdog {
 public:
  // The first phase is kInit. Starts a thread. Throws Error(kConfig) if SYNTRA_WATCHDOG is not such
  // a list.
  explicit Watchdog(WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // From now on this rank reports to its log in `directory`, which all ranks share, and leaves its
  // hang report there for the others. `hosts`: the host of each rank of the job. Removes this
  // rank's hang report of an earlier run.
  void ReportTo(const Path& directory, int rank, std::vector<std::string> hosts);

  // While one of these lives, the process is in its phase. They nest: when the inner one ends, the
  // time of the outer one starts anew. All are made and destroyed by the same thread. `bytes`: how
  // much the phase reads or writes, which extends the limits of kPrepare, kLoad and kSave.
  class Phase {
   public:
    Phase(Watchdog& watchdog, RunPhase phase, int64_t step = 0, double bytes = 0);
    ~Phase();
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;

    // Says that the phase covers no whole step or batch, so that its time tells nothing about how
    // long these take.
    void DoNotMeasure() { is_measured_ = false; }

   private:
    Watchdog& watchdog_;
    RunPhase outer_;
    int64_t outer_step_;
    double outer_bytes_;
    double start_;
    bool is_measured_ = true;
  };

  // Names what the phase is doing now, for the report: "waiting for data", "all-reduce". The name
  // must be a string literal. The phase's time does not start anew.
  void Activity(const char* activity);

  // Reports that the current phase makes progress: its time starts anew.
  void Alive();

  // Tells that a step takes at least `seconds`; ignored unless finite. The first steps may then
  // take 300 s plus a hundred times as long, but at most first_steps.
  void ExpectStep(double seconds);

  // Reports that this rank has failed and will end the job with `code`, but first finishes what it
  // has begun, in at most `seconds`. The other ranks do not take that for a hang. If anything hangs
  // from now on, they and this process end with the code.
  void EndsWith(ExitCode code, double seconds);

  // How many seconds a phase that reads or writes `bytes` may take now.
  double Allowed(RunPhase phase, double bytes = 0);

 private:
  // As which rank this process reports a hang, and where.
  struct Reporter {
    int rank = 0, ranks = 1;
    Path directory;                  // of all ranks' hang reports; empty: there is none
    Path log;                        // empty: stderr
    std::vector<std::string> hosts;  // of the ranks; empty: not known yet
  };

  // The exit code with which the job ends after a rank's error, and how much longer this rank may
  // wait for that.
  struct ErrorEnd {
    ExitCode code = ExitCode::kPeerLost;
    double seconds = 0;
  };

  void Enter(RunPhase phase, int64_t step, double bytes);
  double AllowedLocked(RunPhase phase, double bytes) const;
  double AllowedByMedian(const std::deque<double>& seconds, double least) const;
  void Watch();
  std::string Describe() const;
  ErrorEnd Expire(const Reporter& reporter, const std::string& description,
                  const std::optional<ErrorEnd>& ending) const;
  std::optional<ErrorEnd> FindEnding(const Reporter& reporter) const;
  static void WriteSummary(const Reporter& reporter, int log);

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  const WatchdogLimits limits_;
  Reporter reporter_;
  RunPhase phase_ = RunPhase::kInit;
  int64_t step_ = 0;
  double bytes_ = 0;
  const char* activity_ = "";
  // How many seconds this process was seen running since the phase began. Time in which the whole
  // job is suspended (Slurm gang scheduling, ^Z) does not count.
  double waited_ = 0;
  std::optional<ErrorEnd> ending_;
  double first_steps_;
  std::deque<double> step_seconds_, evaluation_seconds_;
  std::thread thread_;
};

}  // namespace syntra
