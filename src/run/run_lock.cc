// SPDX-License-Identifier: Apache-2.0
#include "run/run_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/error.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

namespace syntra {
namespace {

// The holder's line is far shorter; what is longer is not its line.
constexpr int64_t kLongestLine = 65536;

std::string JobId() {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"}) {
    if (const char* id = std::getenv(variable)) return id;
  }
  return "";
}

std::string LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local;
  localtime_r(&now, &local);
  char text[64];
  strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

std::string HolderIn(const Path& path) {
  // The holder writes its line just after it has the lock.
  for (int attempt = 0; attempt < 10; ++attempt, usleep(20000)) {
    try {
      if (const auto holder = RunLock::DescribeHolder(ReadWholeFile(path, kLongestLine))) {
        return *holder;
      }
    } catch (const Error&) {  // not readable
      break;
    }
  }
  return "another process";
}

void Write(File& file, const std::string& text) {
  try {
    file.Truncate(0);
    file.Write(text);
  } catch (const Error& error) {
    // The lock holds all the same; only its text for people is missing.
    Log().warn("{}", error.what());
  }
}

Path LockOf(const Path& run_directory) { return run_directory / "LOCK"; }

[[noreturn]] void FailHeld(const Path& run_directory, const std::string& holder) {
  Fail(ExitCode::kLocked, "{} is in use by {}; wait for that run, or set another train.directory",
       run_directory.string(), holder);
}

FileLock TakeLock(const Path& run_directory) {
  // RequireFree of another process holds the lock for a moment.
  for (int attempt = 1; attempt <= 5; ++attempt) {
    if (attempt > 1) usleep(20000);
    if (std::optional<FileLock> lock = FileLock::Try(LockOf(run_directory))) {
      return std::move(*lock);
    }
  }
  FailHeld(run_directory, HolderIn(LockOf(run_directory)));
}

}  // namespace

std::optional<std::string> RunLock::DescribeHolder(const std::string& text) {
  try {
    const Json holder = ParseJson(text);
    const std::string job = holder.value("job", "");
    return Printable(fmt::format("process {} on {} since {}{}",
                                 IntegerOf(holder.value("pid", Json(0))), holder.value("host", "?"),
                                 holder.value("start", "?"),
                                 job.empty() ? "" : fmt::format(" (job {})", job)));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string RunLock::HolderOf(const Path& run_directory) {
  const Path lock = LockOf(run_directory);
  return FileLock::IsFree(lock) ? "" : HolderIn(lock);
}

void RunLock::RequireFree(const Path& run_directory) {
  const std::string holder = HolderOf(run_directory);
  if (!holder.empty()) FailHeld(run_directory, holder);
}

RunLock::RunLock(const Path& run_directory)
    : directory_(run_directory), lock_(TakeLock(run_directory)) {
  struct stat status;
  if (stat(directory_.c_str(), &status) != 0) {
    Fail(ExitCode::kResources, "cannot look at {}: {}", directory_.string(),
         SystemErrorText(errno));
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  const Json holder = {
      {"host", HostName()}, {"pid", getpid()}, {"start", LocalTime()}, {"job", JobId()}};
  Write(lock_.file(), JsonText(holder) + "\n");
}

RunLock::~RunLock() {
  // Emptied, not removed: removing a lock file lets two processes lock two files of the same name.
  Write(lock_.file(), "");
}

bool RunLock::DirectoryIsThere() const {
  struct stat status;
  if (stat(directory_.c_str(), &status) != 0) {
    // Other errors say nothing of the name: a file server may be away for a moment.
    return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  }
  return status.st_dev == device_ && status.st_ino == inode_;
}

void RunLock::CheckHeld() const {
  if (!DirectoryIsThere()) {
    Fail(ExitCode::kResources,
         "the run directory {} was removed or moved while the run trained, so nothing more can be "
         "saved; if it was moved, set train.directory to its new place and start again",
         directory_.string());
  }
  if (!lock_.IsStillNamed()) {
    Fail(ExitCode::kLocked,
         "{} was removed or replaced while this run held it, so another run may use the directory; "
         "this run ends and saves nothing more",
         lock_.path().string());
  }
}

}  // namespace syntra
