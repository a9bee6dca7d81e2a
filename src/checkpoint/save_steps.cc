// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save_steps.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/digested_writer.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"

namespace syntra {
namespace {

// `files`: those that the checkpoint consists of, beside its directory.
void RequireFreeSpace(const Path& root, int64_t needed, size_t files) {
  const FreeDisk free = FreeDiskAt(root);
  if (free.bytes < needed) {
    Fail(ExitCode::kResources,
         "cannot write a checkpoint of {} to {}: only {} free; make room there",
         HumanBytes(static_cast<double>(needed)), root.string(),
         HumanBytes(static_cast<double>(free.bytes)));
  }
  const auto inodes = static_cast<int64_t>(files) + 1;
  if (free.files.value_or(inodes) < inodes) {
    Fail(ExitCode::kResources,
         "cannot write a checkpoint of {} files to {}: its file system has inodes for {} more "
         "(df -i); remove some files",
         files, root.string(), *free.files);
  }
}

// In between neither has the name: should the process end there, RemoveLeftovers gives it back to
// the old one.
void ReplaceInTwoSteps(const Path& building, const Path& final_path) {
  const Path replaced = OwnPath(kReplacedPrefix, final_path);
  try {
    RenameDurably(final_path, replaced);
    RenameDurably(building, final_path);
  } catch (...) {
    if (!Exists(final_path)) RenameDurably(replaced, final_path);
    throw;
  }
  RemoveQuietly(replaced);
}

}  // namespace

// A directory cannot be renamed over a full one, and removing the old one first would leave a
// moment with neither.
void PutInPlace(const Path& building, const Path& final_path) {
  try {
    if (!Exists(final_path)) return RenameDurably(building, final_path);
    if (!Exchange(building, final_path)) return ReplaceInTwoSteps(building, final_path);
  } catch (...) {
    RemoveQuietly(building);
    throw;
  }
  // Until this succeeds a crash may bring the old one back, so it is kept.
  SyncDirectory(final_path.parent_path());
  RemoveQuietly(building);
}

std::vector<Shard> PlanShards(std::span<TensorRecord> tensors, int64_t shard_bytes) {
  std::vector<TensorRecord*> sorted;
  for (TensorRecord& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const TensorRecord* a, const TensorRecord* b) { return a->name < b->name; });
  std::vector<Shard> shards;
  int64_t used = 0;
  for (TensorRecord* tensor : sorted) {
    const auto bytes = static_cast<int64_t>(tensor->type.bytes());
    if (shards.empty() || used + bytes > shard_bytes) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().push_back(tensor);
    used += bytes;
  }
  return shards;
}

Manifest PlanManifest(const CheckpointInfo& info, std::span<const Shard> shards) {
  SYNTRA_CHECK(info.step >= 0, "step {}", info.step);
  Manifest manifest;
  manifest.info = info;
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const TensorRecord* tensor : shards[i]) {
      const bool added =
          manifest.tensors.emplace(tensor->name, TensorEntry{tensor->type, ShardName(i)}).second;
      SYNTRA_CHECK(added, "tensor \"{}\" is given twice", tensor->name);
    }
  }
  CheckTensorNames(manifest.tensors);
  return manifest;
}

void LocateTensors(const Shard& shard, const ShardFrame& frame, Manifest* manifest) {
  for (size_t i = 0; i < shard.size(); ++i) {
    manifest->tensors.at(shard[i]->name).offset = frame.offsets[i];
  }
}

void PrepareRoot(const Path& root, int64_t bytes, size_t shards,
                 std::span<const FileRecord> files) {
  for (const FileRecord& file : files) {
    SYNTRA_CHECK(IsSafeFileName(file.name) && !file.name.ends_with(".h5"), "file {}", file.name);
  }
  CreateDirectoriesDurably(root);
  RemoveLeftovers(root);
  RequireFreeSpace(root, bytes, shards + files.size() + 2);  // and index and manifest
}

Path BuildingPath(const Path& root, int64_t step) {
  return OwnPath(kBuildingPrefix, root / StepName(step));
}

FileDigest WriteDurably(const Path& path, std::span<const std::span<const std::byte>> parts) {
  DigestedWriter writer(path);
  for (const std::span<const std::byte> part : parts) writer.Write(part);
  return writer.Finish();
}

void FinishDirectory(const Path& directory, std::span<const FileRecord> files, Manifest* manifest) {
  const auto write = [&](const std::string& name, std::span<const std::byte> bytes) {
    manifest->files[name] = WriteDurably(directory / name, {&bytes, 1});
  };
  write(std::string(kIndexName), MakeIndex(manifest->tensors));
  for (const FileRecord& file : files) {
    write(file.name, std::as_bytes(std::span(file.content)));
  }
  const std::string text = ToText(*manifest);
  const auto bytes = std::as_bytes(std::span<const char>(text));
  WriteDurably(directory / kManifestName, {&bytes, 1});
  SyncDirectory(directory);
}

void CommitDirectory(const Path& building, const Path& root, const Manifest& manifest,
                     const SaveOptions& options, Clock::time_point start) {
  const int64_t step = manifest.info.step;
  const Path final_path = root / StepName(step);
  if (options.before_commit) options.before_commit();
  PutInPlace(building, final_path);
  PruneCheckpoints(root, step, options);
  if (!options.log) return;

  int64_t bytes = 0;
  for (const auto& [file, digest] : manifest.files) bytes += digest.bytes;
  Log().info("saved {} ({}) in {:.2f} s", final_path.string(),
             HumanBytes(static_cast<double>(bytes)), SecondsSince(start));
}

}  // namespace syntra
