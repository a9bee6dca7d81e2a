// SPDX-License-Identifier: Apache-2.0
#include "train/run_disk_needs.h"

#include <algorithm>

#include "base/text.h"
#include "checkpoint/layout.h"
#include "train/snapshot.h"

namespace syntra {
namespace {

// About: a line of metrics.jsonl and its TensorBoard event.
constexpr double kMetricsBytesPerStep = 700;

}  // namespace

std::vector<DiskNeed> RunDiskNeeds(const Config& config, const RunDirectory& directory,
                                   const RunFiles& files) {
  const CheckpointConfig& how = config.checkpoint();
  const int64_t left = std::max<int64_t>(0, config.train().steps() - files.saved_step.value_or(0));
  const std::vector<CheckpointRef> all = ListCheckpoints(directory.checkpoints());
  const int64_t there = std::ssize(all);
  const int64_t scheduled =
      std::ranges::count_if(all, [schedule = ScheduleOf(config)](const CheckpointRef& each) {
        return IsScheduled(schedule, each.step);
      });
  // One that is written stands beside those that are kept. The one that is kept beside the
  // scheduled ones is there already, or is the last to be written.
  int64_t saves = files.saved_step ? 1 : 2;
  for (const int64_t every : {int64_t{how.every()}, SavedEvaluationsEvery(config)}) {
    if (every > 0) saves += left / every;
  }
  const int64_t more =
      left > 0 ? std::clamp<int64_t>(int64_t{how.keep()} + 1 - scheduled, 1, saves) : 0;
  // Links to checkpoints, which take space once these are no longer kept.
  const int64_t best =
      left > 0 ? std::clamp<int64_t>(there + saves - how.keep(), 0, files.best_checkpoints) : 0;
  const int64_t milestones = how.milestone_every() > 0 ? left / how.milestone_every() : 0;
  const auto bytes = [&](int64_t checkpoints) {
    return files.checkpoint_bytes * static_cast<double>(checkpoints);
  };
  return {{Counted(more, "checkpoint"), directory.checkpoints(), bytes(more), 0},
          {Counted(milestones, "milestone"), directory.checkpoints(), 0, bytes(milestones)},
          {Counted(best, "best checkpoint"), directory.root, 0, bytes(best)},
          {"metrics", directory.root, 0, kMetricsBytesPerStep * static_cast<double>(left),
           /*is_estimated=*/true}};
}

}  // namespace syntra
