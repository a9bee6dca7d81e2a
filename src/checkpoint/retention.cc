// SPDX-License-Identifier: Apache-2.0
// Leftovers and retention.
#include "checkpoint/retention.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

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
    return process == getpid() || (kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH);
  }
  return false;
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
      const Path trash =
          root / fmt::format("{}{}-{}", kTrashPrefix, it->path.filename().string(), getpid());
      // After this rename no reader can find a directory that is half deleted.
      RenameDurably(it->path, trash);
      RemoveQuietly(trash);
    }
  } catch (const std::exception& error) {
    Log().warn("old checkpoints stay: {}", error.what());
  }
}

}  // namespace syntra
