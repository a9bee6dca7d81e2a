// Leftovers and retention.
#include "checkpoint/retention.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"

namespace syntra {
namespace {

// Names of leftovers end with the process id of their maker. One save runs at a time in a process,
// so its own leftovers are stale too.
bool IsStale(const std::string& name) {
  if (!name.starts_with(kBuildingPrefix) && !name.starts_with(kTrashPrefix)) return false;
  int64_t process;
  if (!ParseInt64(std::string_view(name).substr(name.rfind('-') + 1), &process) || process <= 0) {
    return false;
  }
  return process == getpid() || (kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH);
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
