// SPDX-License-Identifier: Apache-2.0
// Build aside, fsync, verify, rename, fsync the parent, prune.
#include "checkpoint/save.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"
#include "checkpoint/shard.h"
#include "checkpoint/verify.h"

namespace syntra {
namespace {

using Shard = std::vector<TensorRecord*>;

// In order of name, each shard as full as the bound allows.
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

// `files`: those that the checkpoint consists of, beside its directory.
void RequireFreeSpace(const Path& root, std::span<const TensorRecord> tensors, size_t files) {
  int64_t needed = 0;
  for (const TensorRecord& tensor : tensors) needed += static_cast<int64_t>(tensor.type.bytes());
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

void WriteDurably(const Path& path, std::span<const std::byte> bytes) {
  File file = File::CreateNew(path);
  file.Write(bytes);
  file.Sync();
  // Advice only: reading back should meet the disk, not the memory that was just written.
  posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  file.Close();
}

// Notes where HDF5 put the tensors; with `verify` it compares their bytes.
void LocateTensors(const Shard& shard, const ShardImage& image, bool verify, Manifest* manifest) {
  const std::span<const std::byte> file = image.file.bytes();
  for (size_t i = 0; i < shard.size(); ++i) {
    const TensorRecord& tensor = *shard[i];
    const size_t offset = image.offsets[i], bytes = tensor.type.bytes();
    if (offset > file.size() || bytes > file.size() - offset ||
        (verify && std::memcmp(&file[offset], tensor.data, bytes) != 0)) {
      Fail(ExitCode::kCheckpoint, "tensor {} changed while it was written", tensor.name);
    }
    manifest->tensors.at(tensor.name).offset = static_cast<int64_t>(offset);
  }
}

void WriteContent(const Path& directory, const std::string& name, std::span<const std::byte> bytes,
                  Manifest* manifest) {
  manifest->files[name] = {static_cast<int64_t>(bytes.size()), HexDigestOf(bytes)};
  WriteDurably(directory / name, bytes);
}

void WriteDirectory(const Path& directory, std::span<const Shard> shards, const TensorLoader& load,
                    std::span<const FileRecord> files, bool verify, Manifest* manifest) {
  CreateDirectories(directory);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (load) load(shards[i]);
    const ShardImage image = BuildShard(shards[i]);
    LocateTensors(shards[i], image, verify, manifest);
    WriteContent(directory, ShardName(i), image.file.bytes(), manifest);
  }
  const FileImage index = BuildIndex(manifest->tensors);
  WriteContent(directory, std::string(kIndexName), index.bytes(), manifest);
  for (const FileRecord& file : files) {
    WriteContent(directory, file.name, std::as_bytes(std::span(file.content)), manifest);
  }
  const std::string text = ToText(*manifest);
  WriteDurably(directory / kManifestName, std::as_bytes(std::span<const char>(text)));
  SyncDirectory(directory);
}

void Commit(const Path& building, const Path& final_path) {
  const bool replaces = Exists(final_path);
  try {
    if (replaces) {
      // A directory cannot be renamed over a full one, and removing the old one first would leave a
      // moment with neither.
      Exchange(building, final_path);
    } else {
      RenameDurably(building, final_path);
      return;
    }
  } catch (...) {
    RemoveQuietly(building);
    throw;
  }
  // Until this succeeds a crash may bring the old one back, so it is kept.
  SyncDirectory(final_path.parent_path());
  RemoveQuietly(building);
}

}  // namespace

void SaveCheckpoint(const Path& root, const CheckpointInfo& info,
                    std::span<const TensorRecord> tensors, const SaveOptions& options,
                    std::span<const FileRecord> files, const TensorLoader& load) {
  const auto start = std::chrono::steady_clock::now();
  const std::string name = StepName(info.step);
  const ErrorContext context(
      [&] { return fmt::format("saving checkpoint {}", (root / name).string()); });
  for (const FileRecord& file : files) {
    SYNTRA_CHECK(IsSafeFileName(file.name) && !file.name.ends_with(".h5"), "file {}", file.name);
  }
  SYNTRA_CHECK(options.keep >= 2 && options.milestone_every >= 0 && options.shard_bytes > 0);
  std::vector<TensorRecord> records(tensors.begin(), tensors.end());
  const std::vector<Shard> shards = PlanShards(records, options.shard_bytes);
  Manifest manifest = PlanManifest(info, shards);
  CreateDirectoriesDurably(root);
  RemoveLeftovers(root);
  RequireFreeSpace(root, tensors, shards.size() + files.size() + 2);  // and index and manifest

  const Path building = root / fmt::format("{}{}-{}", kBuildingPrefix, name, getpid());
  try {
    WriteDirectory(building, shards, load, files, options.verify, &manifest);
    if (options.verify) VerifyDirectory(building, info.step);
  } catch (...) {
    RemoveQuietly(building);
    throw;
  }
  Commit(building, root / name);
  PruneCheckpoints(root, info.step, options.keep, options.milestone_every);

  int64_t bytes = 0;
  for (const auto& [file, digest] : manifest.files) bytes += digest.bytes;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Log().info("saved {} ({}) in {:.2f} s", (root / name).string(),
             HumanBytes(static_cast<double>(bytes)), seconds.count());
}

}  // namespace syntra
