// SPDX-License-Identifier: Apache-2.0
// A way to judge a model while it is trained.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "run/common_error.h"
#include "run/metrics_log.h"

namespace syntra {

struct RunDirectory;

struct EvaluationResult {
  NamedValues values;   // all finite, for metrics.jsonl: {"validation_log_perplexity", 2.31}
  std::string summary;  // for the log: "validation log-perplexity 2.3100 over 1,824 tokens"
};

// `what` is "the validation log-perplexity", say. All ranks throw it together.
Divergence NotFiniteAfter(int64_t step, const std::string& what, const RunDirectory& directory);

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Evaluates the model as it is after `step`; collective, with the same result on every rank.
  // `stop` is called now and then, by all ranks together and with the same answer on all: once
  // true, there is no result. Throws NotFiniteAfter if a value is not finite.
  virtual std::optional<EvaluationResult> Evaluate(int64_t step,
                                                   const std::function<bool()>& stop) = 0;
};

}  // namespace syntra
