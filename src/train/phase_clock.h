// SPDX-License-Identifier: Apache-2.0
// Measures the phases of a step on the device: a GPU does its work later than the host enqueues it.
#pragma once

#include <memory>
#include <vector>

#include "core/device.h"
#include "run/step_phases.h"

namespace syntra {

class PhaseClock {
 public:
  explicit PhaseClock(Device& device) : device_(device) {}

  // Begins a step.
  void Start();
  // Ends a part of the step: the work that was enqueued since the last call belongs to `phase`. A
  // phase may occur several times in a step.
  void End(StepPhase phase);
  // The seconds of each phase of this step. Here and below, the device must have done all its work.
  PhaseSeconds Seconds() const;

  // A part of the step, for a trace, with the seconds from the step's start to the part's end.
  struct Part {
    StepPhase phase;
    double end;
  };
  std::vector<Part> Ends() const;
  // The seconds from the step's start to `event`, which belongs to the same device.
  double SecondsUntil(const Device::Event& event) const {
    return event.SecondsSince(*boundaries_.front().event);
  }

 private:
  // Where a phase ends.
  struct Boundary {
    std::unique_ptr<Device::Event> event;
    StepPhase phase = StepPhase::kData;
  };
  Device& device_;
  std::vector<Boundary> boundaries_;  // made once, for as many as a step has
  size_t count_ = 0;                  // how many boundaries this step has
};

}  // namespace syntra
