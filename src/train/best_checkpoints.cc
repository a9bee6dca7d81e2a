// SPDX-License-Identifier: Apache-2.0
#include "train/best_checkpoints.h"

#include <unistd.h>

#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"

namespace syntra {
namespace {

void LinkOrCopy(const Path& from, const Path& to) {
  std::error_code code;
  std::filesystem::create_hard_link(from, to, code);
  if (!code) return;
  std::filesystem::copy_file(from, to, code);
  if (code) {
    Fail(ExitCode::kResources, "cannot copy {} to {}: {}", from.string(), to.string(),
         code.message());
  }
  File::OpenForRead(to).Sync();
}

}  // namespace

void BestCheckpoints::Keep(const std::string& task, int64_t step) {
  const Path directory = DirectoryOf(task);
  const Path from = checkpoints_ / StepName(step), to = directory / StepName(step);
  CreateDirectoriesDurably(directory);
  RemoveLeftovers(directory);
  if (!Exists(to)) {
    const Path building = OwnPath(kBuildingPrefix, to);
    CreateDirectories(building);
    for (const Path& file : ListDirectory(from)) LinkOrCopy(file, building / file.filename());
    SyncDirectory(building);
    RenameDurably(building, to);
  }
  for (const CheckpointRef& other : ListCheckpoints(directory)) {
    if (other.step != step) RemoveQuietly(other.path);
  }
}

}  // namespace syntra
