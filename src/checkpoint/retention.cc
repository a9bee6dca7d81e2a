// SPDX-License-Identifier: Apache-2.0
// Leftovers and retention.
#include "checkpoint/retention.h"

#include <unistd.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"

namespace syntra {
namespace {

// Names of leftovers end with the process id of their maker. One save runs at a time in a process,
// so its own leftovers are stale too.
bool IsStale(std::string_view name) {
  for (const std::string_view prefix : {kBuildingPrefix, kTrashPrefix}) {
    const size_t dash = name.rfind('-');
    int64_t process;
    if (!name.starts_with(prefix) || dash < prefix.size() ||
        !ParseStepName(name.substr(prefix.size(), dash - prefix.size())) ||
        !ParseInt64(name.substr(dash + 1), &process) || process <= 0) {
      continue;
    }
    return process == getpid() || !Alive(static_cast<pid_t>(process));
  }
  return false;
}

// After the rename no reader can find a directory that is half deleted.
void RemoveCheckpoint(const Path& path) {
  const Path trash =
      path.parent_path() / fmt::format("{}{}-{}", kTrashPrefix, path.filename().string(), getpid());
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

void RemoveLeftovers(const Path& root) noexcept {
  try {
    for (const std::string& name : DirectoryNames(root)) {
      if (IsStale(name)) RemoveQuietly(root / name);
    }
  } catch (const std::exception& error) {
    Log().warn("leftovers of interrupted saves stay: {}", error.what());
  }
}

void PruneCheckpoints(const Path& root, int64_t newest_step, int keep,
                      int64_t milestone_every) noexcept {
  try {
    const std::vector<CheckpointRef> checkpoints = ListCheckpoints(root);
    int newer_or_equal = 0;
    for (auto it = checkpoints.rbegin(); it != checkpoints.rend(); ++it) {
      if (it->step > newest_step || newer_or_equal++ < keep) continue;
      if (milestone_every > 0 && it->step > 0 && it->step % milestone_every == 0) continue;
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
