// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went, from its first start on, restarts and pauses included: by what
// metrics.jsonl and events.jsonl say of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/named_value.h"
#include "run/event_log.h"
#include "run/run_history.h"

namespace syntra {

// In seconds of the wall's clock.
struct Goodput {
  double wall = 0;        // from the start of the run's first process to the run's last line
  double useful = 0;      // of steps that the model has learned from
  double skipped = 0;     // of steps that were not finite
  double lost = 0;        // of steps that were trained, but that no checkpoint had
  double evaluation = 0;  // of validation
  double save = 0;        // in which training waited for checkpoints
  double start = 0;       // from a process's start to its first step: preparing and loading
  double idle = 0;        // in which no process trained, or none reached its first step

  int64_t lost_steps = 0;
  int restarts = 0;
  int failures = 0;  // how many of them after an end that was not in order

  double share() const { return wall > 0 ? useful / wall : 0; }
  // The wall time split by its use, in the order of the members; the rest is "other".
  NamedValues Parts() const;
};

// Nothing if the run has no events, as in early versions, or if the wall clock was set back.
std::optional<Goodput> GoodputOf(const RunHistory& history, std::span<const RunEvent> events);

// "93.1% of 1h07m in useful steps; 2 restarts (1 after a failure), 12 steps lost; evaluation 4.2%,
// saves 0.3%".
std::string Describe(const Goodput& goodput);
// The seconds of all steps by phase, and the rest of them; empty where they are not known.
NamedValues PhasesOf(const RunHistory& history);
// "data 0.8%, forward 29.1%, ..., other 0.4%", without what is nothing; "" where they are not
// known.
std::string DescribePhases(const RunHistory& history);

}  // namespace syntra
