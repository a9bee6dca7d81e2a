// SPDX-License-Identifier: Apache-2.0
// A picture (SVG) of the events of runs and their steps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "run/event_log.h"

namespace syntra {

struct NamedEvents {
  std::string name;
  std::vector<RunEvent> events;
};

// One picture of all runs: a row for each, on a common axis of steps, with a mark of the event's
// colour wherever something happened, and a legend.
std::string EventsSvg(std::span<const NamedEvents> runs);

}  // namespace syntra
