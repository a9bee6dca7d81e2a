// SPDX-License-Identifier: Apache-2.0
#include "run/run_status.h"

#include <ctime>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

namespace syntra {
namespace {

constexpr char kDone[] = "done";

struct Previous {
  std::string state;
  int64_t step = -1;
  int64_t starts = 0;
};

Previous ReadStatus(const Path& path) {
  const std::optional<std::string> text = ReadOwnFile(path, 65536);
  if (!text) return {};
  try {
    const Json status = ParseJson(*text);
    return {status.at("state").get<std::string>(), IntegerOf(status.at("step")),
            IntegerOf(status.at("starts_without_progress"))};
  } catch (const Json::exception& error) {
    Log().warn("{} is damaged, so nothing is known of earlier starts ({})", path.string(),
               error.what());
    return {};
  }
}

// As ReadStatus, for a run that trains: a file that cannot be read must not end it.
Previous ReadStatusOrWarn(const Path& path) {
  try {
    return ReadStatus(path);
  } catch (const Error& error) {
    Log().warn("{}", error.what());
    return {};
  }
}

}  // namespace

bool RunStatus::IsDone(int64_t step) const {
  const Previous previous = ReadStatus(path_);
  return previous.state == kDone && previous.step == step;
}

void RunStatus::Start(int64_t step) {
  const Previous previous = ReadStatus(path_);
  const int64_t starts = previous.step == step ? previous.starts : 0;
  if (starts >= kMaxStartsWithoutProgress) {
    Fail(ExitCode::kDiverged,
         "the run has started {} times from step {} and made no progress; do not requeue it. Its "
         "log shows why it ended; remove {} to try again",
         starts, step, path_.string());
  }
  if (starts > 0) Log().warn("start {} from step {} without progress", starts + 1, step);
  Write("running", step, starts + 1);
}

void RunStatus::Progress(int64_t step) {
  if (ReadStatusOrWarn(path_).step != step) WriteOrWarn("running", step, 0);
}

void RunStatus::Stop(int64_t step, Ending ending) {
  const Previous previous = ReadStatusOrWarn(path_);
  const bool got_on = ending != Ending::kOutOfTime || previous.step != step;
  WriteOrWarn(ending == Ending::kDone ? kDone : "stopped", step, got_on ? 0 : previous.starts);
}

void RunStatus::Write(const char* state, int64_t step, int64_t starts) {
  const Json status = {{"state", state},
                       {"step", step},
                       {"starts_without_progress", starts},
                       {"updated_unix_time", static_cast<int64_t>(std::time(nullptr))}};
  ReplaceFileDurably(path_, JsonText(status) + "\n");
}

void RunStatus::WriteOrWarn(const char* state, int64_t step, int64_t starts) {
  try {
    Write(state, step, starts);
  } catch (const Error& error) {
    Log().warn("{}", error.what());
  }
}

}  // namespace syntra
