// SPDX-License-Identifier: Apache-2.0
#include "train/phase_clock.h"

namespace syntra {

void PhaseClock::Start() {
  count_ = 0;
  End(StepPhase::kData);
}

void PhaseClock::End(StepPhase phase) {
  if (count_ == boundaries_.size()) boundaries_.push_back({device_.MakeEvent(), phase});
  boundaries_[count_].phase = phase;
  boundaries_[count_].event->Record();
  ++count_;
}

PhaseSeconds PhaseClock::Seconds() const {
  PhaseSeconds seconds{};
  for (size_t i = 1; i < count_; ++i) {
    seconds[static_cast<size_t>(boundaries_[i].phase)] +=
        boundaries_[i].event->SecondsSince(*boundaries_[i - 1].event);
  }
  return seconds;
}

std::vector<PhaseClock::Part> PhaseClock::Ends() const {
  std::vector<Part> parts;
  for (size_t i = 1; i < count_; ++i) {
    parts.push_back({boundaries_[i].phase, SecondsUntil(*boundaries_[i].event)});
  }
  return parts;
}

}  // namespace syntra
