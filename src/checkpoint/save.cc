// SPDX-License-Identifier: Apache-2.0
// Build aside, fsync, verify, rename, fsync the parent, prune.
#include "checkpoint/save.h"

#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"
#include "checkpoint/save_steps.h"
#include "checkpoint/side_by_side.h"
#include "checkpoint/verify.h"

namespace syntra {
namespace {

// The pieces of the frame and, between them, the values from where they are.
std::vector<std::span<const std::byte>> PartsOf(const Shard& shard, const ShardFrame& frame) {
  std::map<int64_t, std::span<const std::byte>> parts;
  for (const auto& [offset, content] : frame.pieces) parts.emplace(offset, content);
  for (size_t i = 0; i < shard.size(); ++i) {
    const size_t bytes = shard[i]->type.bytes();
    if (bytes > 0) parts.emplace(frame.offsets[i], std::span(shard[i]->data, bytes));
  }
  std::vector<std::span<const std::byte>> in_order;
  for (const auto& [offset, part] : parts) in_order.push_back(part);
  return in_order;
}

void WriteDirectory(const Path& directory, std::span<const Shard> shards,
                    std::span<const FileRecord> files, Manifest* manifest) {
  CreateDirectories(directory);
  std::vector<FileTask> tasks;
  for (size_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards[i];
    ShardFrame frame = MakeShardFrame(shard);  // here: HDF5 runs on one thread at a time
    LocateTensors(shard, frame, manifest);
    const int64_t bytes = frame.bytes;
    FileDigest& digest = manifest->files[ShardName(i)];
    auto write = [&shard, &digest, path = directory / ShardName(i), frame = std::move(frame)] {
      digest = WriteDurably(path, PartsOf(shard, frame));
    };
    tasks.push_back({bytes, std::move(write)});
  }
  RunSideBySide(tasks);
  FinishDirectory(directory, files, manifest);
}

}  // namespace

void SaveCheckpoint(const Path& root, const CheckpointInfo& info,
                    std::span<const TensorRecord> tensors, const SaveOptions& options,
                    std::span<const FileRecord> files) {
  const auto start = Clock::now();
  const ErrorContext context(
      [&] { return fmt::format("saving checkpoint {}", (root / StepName(info.step)).string()); });
  SYNTRA_CHECK(options.keep >= 2 && options.milestone_every >= 0 && options.shard_bytes > 0);
  std::vector<TensorRecord> records(tensors.begin(), tensors.end());
  const std::vector<Shard> shards = PlanShards(records, options.shard_bytes);
  Manifest manifest = PlanManifest(info, shards);
  int64_t bytes = 0;
  for (const TensorRecord& tensor : tensors) bytes += static_cast<int64_t>(tensor.type.bytes());
  PrepareRoot(root, bytes, shards.size(), files);

  const Path building = BuildingPath(root, info.step);
  try {
    WriteDirectory(building, shards, files, &manifest);
    if (options.verify) VerifyDirectory(building, info.step, ReadFrom::kDisk);
  } catch (...) {
    RemoveQuietly(building);
    throw;
  }
  CommitDirectory(building, root, manifest, options, start);
}

}  // namespace syntra
