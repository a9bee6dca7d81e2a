// SPDX-License-Identifier: Apache-2.0
// The requests that this rank of a run has received, by signals, by a time limit and, on rank 0, by
// the files STOP and SAVE and the end of the scheduler's job. Ranks that work together combine
// their requests in a collective; while they work apart, a file tells the others.
#pragma once

#include <cstdlib>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/file.h"

namespace syntra {

// Seconds until the scheduler ends the job of this process. `end_time`: what the environment says
// of that (Unix time). Infinite where it is not a number: outside a job, or where the job has no
// limit.
double SecondsLeftInJob(const char* end_time = std::getenv("SLURM_JOB_END_TIME"));

// How long before the end of a job the run stops. `job_seconds` is how long the job lasts from the
// run's start, `longest_gap` the longest time so far between two looks for requests.
//
// From one look to the next there are at most a step and a save, and a run that stops makes both
// once more. Every process has seen either a save or the load of a checkpoint in such a gap. So the
// reserve is twice the longest gap, plus a margin for the launcher and for schedulers that are not
// exact to the second. It is at most half of the job, so that a short job makes progress.
double SecondsKeptForSaving(double job_seconds, double longest_gap);

struct RequestOptions {
  Path run_directory;
  Path log_directory;  // shared by all ranks
  // For one rank: it obeys STOP and SAVE, and removes the note that StopOfAnyRank of an earlier run
  // has left.
  bool takes_files = false;
  double seconds = 0;  // from now until the run stops by itself; 0: it does not
  // Seconds until the job ends. The run stops before that, with time enough to save.
  double job_seconds = std::numeric_limits<double>::infinity();
};

class Requests {
 public:
  explicit Requests(RequestOptions options);

  // Looks for new requests, which costs two system calls where it takes files. Returns whether this
  // rank is asked to save and stop with code 75; once that is true, it stays true.
  bool Stop();
  // Whether Stop has found a request to save and go on; each request is reported once.
  bool TakeSave() { return std::exchange(save_, false); }
  // Whether any rank has been asked to stop, also one that is far from its next collective. The
  // other ranks may find out earlier or later.
  bool StopOfAnyRank();
  // Whether this rank stops because of the time limit, its own or the job's.
  bool stopped_by_time() const { return stopped_by_time_; }

 private:
  // Whether the job ends so soon that the run has to stop now.
  bool JobEnds(double now);

  RequestOptions options_;
  double start_ = MonotonicSeconds();
  double latest_look_ = start_;
  double longest_gap_ = 0;  // between two looks, in seconds
  bool stop_ = false, save_ = false, stopped_by_time_ = false;
  Path note_;  // the file that exists while the ranks are asked to stop
};

}  // namespace syntra
