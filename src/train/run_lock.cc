#include "train/run_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/error.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"

namespace syntra {
namespace {

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

// "process 12 on node7 since 2026-01-31 12:00:00 (job 34)".
std::string DescribeHolder(const Path& path) {
  // The holder writes its line just after it has the lock.
  for (int attempt = 0; attempt < 10; ++attempt, usleep(20000)) {
    try {
      const Json holder = ParseJson(ReadWholeFile(path, 65536));
      const std::string job = holder.value("job", "");
      return fmt::format("process {} on {} since {}{}", holder.value("pid", 0),
                         holder.value("host", "?"), holder.value("start", "?"),
                         job.empty() ? "" : fmt::format(" (job {})", job));
    } catch (const Json::exception&) {  // not yet there
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

// False if another process holds the lock.
bool TryLock(const File& file, int kind) {
  int result;
  do {
    result = flock(file.descriptor(), kind | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  Fail(ExitCode::kResources, "cannot lock {}: {}", file.path().string(), SystemErrorText(errno));
}

[[noreturn]] void FailHeld(const Path& run_directory, const Path& file) {
  Fail(ExitCode::kLocked, "{} is in use by {}; wait for that run, or set another train.directory",
       run_directory.string(), DescribeHolder(file));
}

}  // namespace

void RunLock::RequireFree(const Path& run_directory) {
  const Path path = run_directory / "LOCK";
  if (!std::filesystem::exists(path)) return;
  // Closing the file ends the lock. It is shared, so two that ask do not meet.
  if (!TryLock(File::OpenForRead(path), LOCK_SH)) FailHeld(run_directory, path);
}

RunLock::RunLock(const Path& run_directory) : file_(File::OpenForAppend(run_directory / "LOCK")) {
  // RequireFree of another process holds the lock for a moment.
  for (int attempt = 1; !TryLock(file_, LOCK_EX); ++attempt, usleep(20000)) {
    if (attempt == 5) FailHeld(run_directory, file_.path());
  }
  const Json holder = {
      {"host", HostName()}, {"pid", getpid()}, {"start", LocalTime()}, {"job", JobId()}};
  Write(file_, JsonText(holder) + "\n");
}

RunLock::~RunLock() {
  // Emptied, not removed: removing a lock file lets two processes lock two files of the same name.
  if (file_.descriptor() >= 0) Write(file_, "");
}

}  // namespace syntra
