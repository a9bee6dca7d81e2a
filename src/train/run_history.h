// SPDX-License-Identifier: Apache-2.0
// What metrics.jsonl tells of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/plot.h"

namespace syntra {

// Calls `visit` with each line of metrics.jsonl and its step. Lines that are no metrics are left
// out.
void VisitMetrics(const Path& metrics,
                  const std::function<void(int64_t step, const Json& line)>& visit);

struct RunHistory {
  int64_t step = 0;                         // the last one that was trained
  std::vector<PlotPoint> loss, validation;  // by step, in nats a target token
  double seconds = 0;                       // of all steps together
  double tokens_per_second = 0, mfu = 0;    // over all steps; MFU is NaN where it is not known
  int64_t skipped = 0;                      // steps that were not finite
};

// Throws Error(kConfig) if there is no such file.
RunHistory ReadRunHistory(const Path& metrics);

}  // namespace syntra
