// SPDX-License-Identifier: Apache-2.0
#include "plan/label_ranking.h"

#include "model/architecture.h"

namespace syntra {

bool RanksLabels(const Config& config, const Task& task) {
  if (task.traits().labels.empty()) return false;  // there is nothing to rank
  return config.evaluation().rank_classification() ||
         ArchitectureOf(config.model()).outputs() == Outputs::kClasses;
}

}  // namespace syntra
