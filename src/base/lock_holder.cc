// SPDX-License-Identifier: Apache-2.0
#include "base/lock_holder.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>

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

void Write(File& file, const std::string& text) {
  try {
    file.Truncate(0);
    file.Write(text);
  } catch (const Error& error) {
    Log().warn("{}", error.what());
  }
}

}  // namespace

void NameHolder(FileLock& lock) {
  const Json holder = {
      {"host", HostName()}, {"pid", getpid()}, {"start", LocalTime()}, {"job", JobId()}};
  Write(lock.file(), JsonText(holder) + "\n");
}

void ForgetHolder(FileLock& lock) { Write(lock.file(), ""); }

std::optional<std::string> DescribeHolder(const std::string& text) {
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

std::string HolderIn(const Path& locked) {
  // The holder writes its line just after it has the lock.
  for (int attempt = 0; attempt < 10; ++attempt, usleep(20000)) {
    try {
      if (const auto holder = DescribeHolder(ReadWholeFile(locked, kLongestLine))) return *holder;
    } catch (const Error&) {  // not readable
      break;
    }
  }
  return "another process";
}

}  // namespace syntra
