// SPDX-License-Identifier: Apache-2.0
// Records a step's work on the device as spans of a trace: its phases and, inside of them, the
// instructions of its programs.
//
// All times are the device's, measured by events. They are related to the host's clock at the start
// of the step, when the device has nothing to do: on a GPU an event is then reached within
// microseconds.
#pragma once

#include <deque>

#include "program/executable.h"
#include "run/trace.h"
#include "train/phase_clock.h"

namespace syntra {

class StepTrace {
 public:
  // Begins a step. `ops`: records instructions, too; on a GPU they are then enqueued one by one
  // instead of as a CUDA graph. All arguments must outlive it.
  StepTrace(Trace& trace, Device& device, PhaseClock& clock, bool ops)
      : trace_(trace), device_(device), clock_(clock), ops_(ops), begin_(Clock::now()) {}

  // The times of the program run that comes next; null without ops.
  RunTimes* NextRun() { return ops_ ? &runs_.emplace_back() : nullptr; }
  // Notes that the ranks begin to add a bucket of their gradients.
  void StartsSum(int64_t elements);
  // Adds all spans to the trace. The device must have done the step's work.
  void Finish();

 private:
  struct Bucket {
    std::unique_ptr<Device::Event> ready;
    int64_t elements;
  };
  Clock::time_point At(double seconds) const;
  void AddInstructions(const RunTimes& run);

  Trace& trace_;
  Device& device_;
  PhaseClock& clock_;
  const bool ops_;
  const Clock::time_point begin_;
  std::deque<RunTimes> runs_;
  std::vector<Bucket> buckets_;
};

}  // namespace syntra
