// SPDX-License-Identifier: Apache-2.0
#include "train/disk_needs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "train/snapshot.h"

namespace syntra {
namespace {

// The number of files that a run creates soon: its directory with logs, metrics and events, and two
// checkpoints of a few files.
constexpr int64_t kFirstFiles = 40;

// The nearest directory at or above `path` that exists; a file in its way is returned, too.
Path ExistingAncestor(const Path& path) {
  Path place = std::filesystem::absolute(path);
  std::error_code code;
  while (!std::filesystem::exists(place, code) && place.has_relative_path()) {
    place = place.parent_path();
  }
  return place;
}

// A link to nothing is in the way of a directory, as on a machine where a disk is not mounted.
void RequireNoDanglingLink(const Path& path, const char* field) {
  std::error_code code;
  for (Path place = std::filesystem::absolute(path); place.has_relative_path();
       place = place.parent_path()) {
    if (std::filesystem::exists(place, code)) return;
    if (!std::filesystem::is_symlink(place, code)) continue;
    Fail(ExitCode::kResources,
         "{} is a link to {}, which does not exist; create that directory, or set another {}",
         place.string(), std::filesystem::read_symlink(place, code).string(), field);
  }
}

dev_t FileSystemOf(const Path& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    Fail(ExitCode::kResources, "cannot look at {}: {}", path.string(), SystemErrorText(errno));
  }
  return status.st_dev;
}

struct FileSystem {
  Path place;
  double soon = 0, later = 0;
  bool is_estimated = false;
  std::vector<std::string> parts;
};

std::string Amount(double bytes, bool is_estimated) {
  return (is_estimated ? "about " : "") + HumanBytes(bytes);
}

std::map<dev_t, FileSystem> ByFileSystem(const std::vector<DiskNeed>& needs) {
  std::map<dev_t, FileSystem> systems;
  for (const DiskNeed& need : needs) {
    const Path place = ExistingAncestor(need.place);
    FileSystem& system = systems[FileSystemOf(place)];
    if (system.place.empty()) system.place = place;
    system.soon += need.soon;
    system.later += need.later;
    if (const double bytes = need.soon + need.later; bytes > 0) {
      system.parts.push_back(fmt::format("{} {}", need.what, Amount(bytes, need.is_estimated)));
      system.is_estimated |= need.is_estimated;
    }
  }
  return systems;
}

// About: a line of metrics.jsonl and its TensorBoard event.
constexpr double kMetricsBytesPerStep = 700;

}  // namespace

void CheckWritable(const Path& path, const char* field) {
  RequireNoDanglingLink(path, field);
  const Path place = ExistingAncestor(path);
  if (!IsDirectory(place)) {
    Fail(ExitCode::kResources, "{} cannot be a directory: {} is a file; set another {}",
         path.string(), place.string(), field);
  }
  if (access(place.c_str(), W_OK | X_OK) != 0) {
    Fail(ExitCode::kResources, "cannot write to {}: {}; set another {}, or change its rights",
         place.string(), SystemErrorText(errno), field);
  }
}

DiskFinding CheckDisk(const std::vector<DiskNeed>& needs) {
  DiskFinding finding;
  std::vector<std::string> texts;
  for (const auto& [device, system] : ByFileSystem(needs)) {
    const FreeDisk space = FreeDiskAt(system.place);
    const auto free = static_cast<double>(space.bytes);
    const std::string parts = Join(system.parts, ", ");
    const std::string all = Amount(system.soon + system.later, system.is_estimated);
    if (free < system.soon) {
      Fail(ExitCode::kResources,
           "{} has {} free, but the run needs {} there soon, and {} in all ({}); free some space, "
           "or choose another place (train.directory, data.prepared)",
           system.place.string(), HumanBytes(free), Amount(system.soon, system.is_estimated), all,
           parts);
    }
    if (space.files.value_or(kFirstFiles) < kFirstFiles) {
      Fail(ExitCode::kResources,
           "{} has inodes for {} more files and directories (df -i), but the run creates up to {} "
           "there at once; remove some files, or choose another place (train.directory, "
           "data.prepared)",
           system.place.string(), *space.files, kFirstFiles);
    }
    const bool tight = free < system.soon + system.later;
    finding.is_tight |= tight;
    texts.push_back(
        fmt::format("{}: {} free, {} needed{}{}", system.place.string(), HumanBytes(free), all,
                    parts.empty() ? "" : fmt::format(" before the run ends ({})", parts),
                    tight ? "; it will fail when the disk is full" : ""));
  }
  finding.text = Join(texts, "; ");
  return finding;
}

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
