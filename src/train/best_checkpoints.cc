// SPDX-License-Identifier: Apache-2.0
#include "train/best_checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"
#include "checkpoint/save_steps.h"
#include "checkpoint/verify.h"

namespace syntra {
namespace {

void LinkOrCopy(const Path& from, const Path& to) {
  std::error_code code;
  std::filesystem::create_hard_link(from, to, code);
  if (!code) return;
  File source = File::OpenForRead(from), copy = File::CreateNew(to);
  std::vector<std::byte> block(size_t{1} << 20);
  while (const size_t count = source.Read(block)) copy.Write(std::span(block).first(count));
  copy.Sync();
  copy.Close();
}

// In a new directory, of which nothing remains if it cannot be completed.
void Fill(const Path& building, const Path& from) {
  try {
    CreateDirectories(building);
    for (const Path& file : ListDirectory(from)) LinkOrCopy(file, building / file.filename());
    SyncDirectory(building);
  } catch (...) {
    RemoveQuietly(building);  // it may be what fills the disk
    throw;
  }
}

// Whether every file of `to` is one of `from`.
bool IsLinked(const Path& from, const Path& to) {
  const std::vector<std::string> names = DirectoryNames(from);
  return DirectoryNames(to) == names && std::ranges::all_of(names, [&](const std::string& name) {
           std::error_code code;  // then they are not known to be
           return std::filesystem::equivalent(from / name, to / name, code);
         });
}

// Whether `to` is a sound copy of `from`.
bool IsCopied(const Path& from, const Path& to) {
  try {
    if (ReadWholeFile(from / kManifestName) != ReadWholeFile(to / kManifestName)) return false;
    VerifyDirectory(to);
    return true;
  } catch (const Error&) {
    return false;  // it is made anew
  }
}

}  // namespace

void KeepCheckpoint(const Path& from, const Path& to) {
  const Path directory = to.parent_path();
  CreateDirectoriesDurably(directory);
  RemoveLeftovers(directory);
  if (Exists(to) && (IsLinked(from, to) || IsCopied(from, to))) return;
  const Path building = OwnPath(kBuildingPrefix, to);
  Fill(building, from);
  PutInPlace(building, to);
}

void BestCheckpoints::Keep(const std::string& task, int64_t step) {
  const Path directory = DirectoryOf(task);
  KeepCheckpoint(checkpoints_ / StepName(step), directory / StepName(step));
  for (const CheckpointRef& other : ListCheckpoints(directory)) {
    if (other.step != step) RemoveQuietly(other.path);
  }
}

}  // namespace syntra
