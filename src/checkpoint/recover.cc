// SPDX-License-Identifier: Apache-2.0
// Newest first, until one verifies.
#include "checkpoint/recover.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/directories_below.h"
#include "base/error.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/retention.h"

namespace syntra {
namespace {

// One that was passed over.
struct RejectedCheckpoint {
  CheckpointRef checkpoint;
  std::string reason;
  // If it merely could not be read (rights, descriptors, a failing disk), it may be good later: it
  // stays.
  bool damaged;
};

void SetAside(const CheckpointRef& bad) {
  const std::string name = std::string(kBadPrefix) + bad.path.filename().string();
  const Path target = FirstFreeName(bad.path.parent_path() / name);
  try {
    RenameDurably(bad.path, target);
    Log().warn("renamed the damaged checkpoint {} to {}", bad.path.string(),
               target.filename().string());
  } catch (const Error& error) {
    Log().warn("cannot set the damaged checkpoint {} aside: {}", bad.path.string(), error.what());
  }
}

void PassOver(const RejectedCheckpoint& bad, Recovery mode) {
  Log().warn("passed over checkpoint {}: {}", bad.checkpoint.path.string(), bad.reason);
  if (mode == Recovery::kSetAside && bad.damaged) SetAside(bad.checkpoint);
}

[[noreturn]] void FailAllRejected(const Path& root,
                                  const std::vector<RejectedCheckpoint>& rejected) {
  std::string list;
  for (const RejectedCheckpoint& bad : rejected) list += fmt::format("\n- {}", bad.reason);
  if (!rejected.empty() && std::ranges::none_of(rejected, &RejectedCheckpoint::damaged)) {
    Fail(ExitCode::kResources, "no checkpoint in {} can be read, and they may all be good:{}",
         root.string(), list);
  }
  Fail(
      ExitCode::kCheckpoint,
      "no usable checkpoint in {}; restore one (a run in another directory starts from scratch):{}",
      root.string(), list);
}

bool IsBadName(const std::string& name) { return name.starts_with(kBadPrefix); }

// An older model in its place would give other results without a word.
[[noreturn]] void FailUnreadable(const CheckpointRef& newest, const Error& error) {
  Fail(error.code(), "{}\nTry again, or name an older checkpoint than {} to use that", error.what(),
       newest.path.filename().string());
}

std::vector<CheckpointRef> NewestFirst(const Path& root) {
  std::vector<CheckpointRef> checkpoints = ListCheckpoints(root);
  std::ranges::reverse(checkpoints);
  return checkpoints;
}

// Where the checkpoints are, if `path` is a run directory or holds them itself.
Path RootAt(const Path& path) {
  const Path inner = path / kCheckpointsFolder;
  return Exists(inner) ? inner : path;
}

// The place that a user's path names.
Path NamedPlace(const Path& named) {
  const Path path = WithoutCheckpointFile(named);
  const bool is_link = TypeOf(path) == std::filesystem::file_type::symlink;
  if (!is_link || !Exists(path / kManifestName)) return path;
  std::error_code code;
  const Path behind = std::filesystem::canonical(path, code);
  return code ? path : behind;
}

}  // namespace

std::optional<Checkpoint> FindNewestValid(const Path& root, Recovery mode) {
  if (mode == Recovery::kSetAside && Exists(root)) RemoveLeftovers(root);
  const std::vector<CheckpointRef> candidates = NewestFirst(root);
  std::vector<RejectedCheckpoint> rejected;
  for (const CheckpointRef& candidate : candidates) {
    try {
      Checkpoint found(candidate.path, VerifyDirectory(candidate.path, candidate.step));
      for (const RejectedCheckpoint& bad : rejected) PassOver(bad, mode);
      return found;
    } catch (const UnsupportedFormat&) {
      throw;
    } catch (const OutOfMemory&) {
      throw;  // it may be good: training must not go back because memory is short
    } catch (const Error& error) {
      const bool damaged = error.code() == ExitCode::kCheckpoint;
      if (mode == Recovery::kReadOnly && !damaged && Exists(candidate.path)) {
        FailUnreadable(candidate, error);
      }
      rejected.push_back({candidate, error.what(), damaged});
    }
  }
  // A run has saved another one meanwhile, and removed these.
  if (mode == Recovery::kReadOnly && NewestFirst(root) != candidates) {
    return FindNewestValid(root, mode);
  }
  if (!rejected.empty()) FailAllRejected(root, rejected);
  if (!Exists(root)) return std::nullopt;
  // Only the remains of damaged checkpoints: there was training here, and it must not silently
  // restart.
  for (const std::string& name : DirectoryNames(root)) {
    if (IsBadName(name)) {
      rejected.push_back({{}, fmt::format("{} was found to be damaged earlier", name), true});
    }
  }
  if (!rejected.empty()) FailAllRejected(root, rejected);
  return std::nullopt;
}

std::optional<CheckpointSummary> NewestSummary(const Path& root) {
  std::vector<RejectedCheckpoint> rejected;
  for (const CheckpointRef& candidate : NewestFirst(root)) {
    try {
      return CheckpointSummary{candidate.path, ReadManifest(candidate.path).info};
    } catch (const UnsupportedFormat&) {
      throw;
    } catch (const Error& error) {
      rejected.push_back({candidate, fmt::format("{}: {}", candidate.path.string(), error.what()),
                          error.code() == ExitCode::kCheckpoint});
    }
  }
  if (rejected.empty()) return std::nullopt;
  FailAllRejected(root, rejected);
}

int64_t StepToGoBackTo(const Path& root, int64_t first_bad_step, const SaveSchedule& schedule) {
  std::vector<CheckpointRef> candidates = ListCheckpoints(root);
  const auto first_late = std::ranges::find_if(
      candidates, [&](const CheckpointRef& each) { return each.step >= first_bad_step; });
  std::reverse(candidates.begin(), first_late);
  std::stable_partition(candidates.begin(), candidates.end(), [&](const CheckpointRef& each) {
    return IsScheduled(schedule, each.step);
  });
  std::vector<RejectedCheckpoint> rejected;
  for (const CheckpointRef& candidate : candidates) {
    try {
      VerifyDirectory(candidate.path, candidate.step);
      for (const RejectedCheckpoint& bad : rejected) PassOver(bad, Recovery::kSetAside);
      return candidate.step;
    } catch (const UnsupportedFormat&) {
      throw;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kCheckpoint) throw;
      rejected.push_back({candidate, error.what(), true});
    }
  }
  FailAllRejected(root, rejected);
}

bool HoldsCheckpoints(const Path& path) {
  return Exists(path / kCheckpointsFolder) || (IsDirectory(path) && !ListCheckpoints(path).empty());
}

Path WithoutCheckpointFile(const Path& path) {
  const Path name = path.filename();
  if (name != kManifestName && name != kIndexName) return path;
  const Path directory = path.has_parent_path() ? path.parent_path() : ".";
  return Exists(directory / kManifestName) ? directory : path;
}

Checkpoint OpenNewest(const Path& path) { return OpenNewestIn(NamedPlace(path)); }

Checkpoint OpenNewestIn(const Path& path) {
  RequireExists(path);
  if (!IsDirectory(path)) {
    Fail(ExitCode::kCheckpoint, "{} is not a directory; give a run's, or a checkpoint's",
         path.string());
  }
  if (Exists(path / kManifestName)) return Checkpoint(path);
  if (std::optional<Checkpoint> found = FindNewestValid(RootAt(path), Recovery::kReadOnly)) {
    return std::move(*found);
  }
  const std::vector<std::string> inside = DirectoriesBelow(path, HoldsCheckpoints);
  Fail(ExitCode::kCheckpoint, "{} holds no checkpoint{}", path.string(),
       inside.empty() ? ""
                      : " itself, but these in it do; name one of them: " + JoinFirst(inside, 4));
}

std::vector<Path> CheckpointsAt(const Path& named) {
  const Path path = NamedPlace(named);
  if (!IsDirectory(path)) return {};
  if (Exists(path / kManifestName)) return {path};
  std::vector<Path> paths;
  for (const CheckpointRef& each : NewestFirst(RootAt(path))) paths.push_back(each.path);
  return paths;
}

}  // namespace syntra
