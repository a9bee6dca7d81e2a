// SPDX-License-Identifier: Apache-2.0
// The result of a comparison of mixers: as a table, as JSON, and as a page with curves.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "metrics/average.h"
#include "run/run_history.h"

namespace syntra {

struct MixerResult {
  std::string name, model;  // the listed name; a description in a few words
  int64_t parameters = 0;
  double flops_per_step = 0;
  double planned_bytes = 0;           // of one rank's memory
  std::vector<RunHistory> histories;  // of the runs that came to their end, one for each seed
  Json results;                       // of tasks: results.json of these runs as one; else null
  int diverged = 0;                   // runs that could not go on
  // How the settings of runs that were done before differ from those of this comparison.
  std::vector<std::string> other_settings;

  // The log-perplexity of the last evaluations; not finite if no run has one.
  Spread LogPerplexity() const;
  Spread StepsPerSecond() const;
  // The evaluations by the name of what they measure: "validation log-perplexity", or each metric
  // of the tasks ("cola/matthews"). Means over the runs at each evaluated step but the first, whose
  // log-perplexity is so high that all later ones would look like one line.
  std::map<std::string, Curve> Curves() const;
};

// Mixers in their order. Speeds are relative to the first.
struct Comparison {
  int ranks = 1, seeds = 1;
  int64_t steps = 0;
  bool of_tasks = false;  // the mixers learned tasks, not a corpus
  std::vector<MixerResult> mixers;
};

std::string ComparisonText(const Comparison& comparison);
Json ComparisonJson(const Comparison& comparison);
// The page as HTML, which needs no other files.
std::string ComparisonPage(const Comparison& comparison);

}  // namespace syntra
