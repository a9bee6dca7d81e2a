// Ends a process that hangs. MPI waits for ever for a rank that is frozen or stuck, and a job that
// does nothing holds its machines until someone looks. A thread checks that each phase of the run
// ends in its time; if not, it writes which rank hangs in what, and the stacks of all threads, to
// the rank's log, tells which ranks did not even report, and exits with code 7 (kPeerLost).
//
// All ranks must be in the same kind of phase together: one that waits in a step while another
// saves would be taken for hanging. Outside every phase nothing is watched.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "base/file.h"

namespace syntra {

enum class RunPhase : int { kNone, kInit, kPrepare, kStep, kSave, kEvaluation };

struct WatchdogOptions {
  int rank = 0;
  int ranks = 1;
  // Where rank-NNNN.log is and hang reports go; empty: everything goes to stderr.
  Path directory;
  // Seconds allowed. A step may take max(step, step_medians x median of the last steps), and until
  // three steps are measured first_steps, since nothing is known about this model on this machine.
  double init = 60;
  double prepare = 600;  // between two calls of Alive()
  double first_steps = 1800;
  double step = 60;
  double step_medians = 20;
  double save = 1800;
  double evaluation = 1800;
  // How long an expired rank waits for the reports of the others.
  double gather = 2;
};

class Watchdog {
 public:
  // Removes this rank's hang report of an earlier run. Start it after any fork.
  explicit Watchdog(WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The run is in a phase while one of these lives. They nest; the outer phase's time starts anew
  // when the inner one ends. Made and destroyed by one thread.
  class Phase {
   public:
    Phase(Watchdog& watchdog, RunPhase phase, int64_t step = 0);
    ~Phase();
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;

   private:
    Watchdog& watchdog_;
    RunPhase outer_;
    int64_t outer_step_;
    double start_;
  };

  // What the phase is doing, for the report: "waiting for data", "all-reduce". A string literal.
  void Activity(const char* activity);

  // The current phase makes progress: its time starts anew.
  void Alive();

  // Seconds that a phase may take now.
  double Allowed(RunPhase phase);

 private:
  void Enter(RunPhase phase, int64_t step);
  double AllowedLocked(RunPhase phase) const;
  void Watch();
  std::string Describe() const;
  [[noreturn]] void Expire(const std::string& description);

  const WatchdogOptions options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  RunPhase phase_ = RunPhase::kNone;
  int64_t step_ = 0;
  const char* activity_ = "";
  // Time that this process was seen running since the phase began. A suspended job (Slurm gang
  // scheduling, ^Z) does not age.
  double waited_ = 0;
  std::deque<double> step_seconds_;
  std::thread thread_;
};

}  // namespace syntra
