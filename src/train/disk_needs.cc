// SPDX-License-Identifier: Apache-2.0
#include "train/disk_needs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "base/error.h"
#include "base/text.h"

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

}  // namespace syntra
