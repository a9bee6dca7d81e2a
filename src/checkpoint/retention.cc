// SPDX-License-Identifier: Apache-2.0
// Leftovers and retention.
#include "checkpoint/retention.h"

#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/log.h"
#include "checkpoint/layout.h"

namespace syntra {
namespace {

// The parts of a name that OwnPath made.
struct Leftover {
  std::string_view prefix, checkpoint;
  pid_t process;
};

std::optional<Leftover> ParseLeftover(std::string_view name) {
  for (const std::string_view prefix : {kBuildingPrefix, kTrashPrefix, kReplacedPrefix}) {
    const size_t dash = name.rfind('-');
    if (!name.starts_with(prefix) || dash < prefix.size()) continue;
    const std::string_view checkpoint = name.substr(prefix.size(), dash - prefix.size());
    const std::optional<pid_t> process = ParseProcessId(name.substr(dash + 1));
    if (ParseStepName(checkpoint) && process) return Leftover{prefix, checkpoint, *process};
  }
  return std::nullopt;
}

// After the rename no reader can find a directory that is half deleted.
void RemoveCheckpoint(const Path& path) {
  const Path trash = OwnPath(kTrashPrefix, path);
  RenameDurably(path, trash);
  RemoveQuietly(trash);
}

}  // namespace

void RemoveQuietly(const Path& path) noexcept {
  try {
    RemoveAll(path);
  } catch (const std::exception& error) {
    Log().warn("{}", error.what());
  }
}

Path OwnPath(std::string_view prefix, const Path& checkpoint) {
  return checkpoint.parent_path() /
         fmt::format("{}{}-{}", prefix, checkpoint.filename().string(), getpid());
}

void RemoveLeftovers(const Path& root) noexcept {
  try {
    for (const std::string& name : DirectoryNames(root)) {
      const std::optional<Leftover> found = ParseLeftover(name);
      if (!found) continue;
      const Path checkpoint = root / found->checkpoint;
      if (found->prefix == kReplacedPrefix && !Exists(checkpoint)) {
        RenameDurably(root / name, checkpoint);
      } else if (Abandoned(found->process)) {
        RemoveQuietly(root / name);
      }
    }
  } catch (const std::exception& error) {
    Log().warn("leftovers of interrupted saves stay: {}", error.what());
  }
}

void PruneCheckpoints(const Path& root, int64_t newest_step, const SaveOptions& options) noexcept {
  try {
    const std::vector<CheckpointRef> checkpoints = ListCheckpoints(root);
    const int64_t milestone = options.milestone_every;
    int scheduled = options.keep, others = 1;  // still to be kept
    for (auto it = checkpoints.rbegin(); it != checkpoints.rend(); ++it) {
      if (it->step > newest_step) continue;
      int& left = IsScheduled(options.schedule, it->step) ? scheduled : others;
      if (left-- > 0) continue;
      if (milestone > 0 && it->step > 0 && it->step % milestone == 0) continue;
      RemoveCheckpoint(it->path);
    }
  } catch (const std::exception& error) {
    Log().warn("old checkpoints stay: {}", error.what());
  }
}

void RemoveCheckpointsAfter(const Path& root, int64_t step) {
  std::vector<CheckpointRef> checkpoints = ListCheckpoints(root);
  for (; !checkpoints.empty() && checkpoints.back().step > step; checkpoints.pop_back()) {
    RemoveCheckpoint(checkpoints.back().path);
  }
}

}  // namespace syntra
