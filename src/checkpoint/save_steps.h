// SPDX-License-Identifier: Apache-2.0
// The steps that saves are made of, both by one process (save.h) and by several (shared_save.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save.h"
#include "checkpoint/shard.h"
#include "checkpoint/tensor_record.h"

namespace syntra {

// The tensors of one file.
using Shard = std::vector<TensorRecord*>;

// In order of name, each shard as full as the bound allows.
std::vector<Shard> PlanShards(std::span<TensorRecord> tensors, int64_t shard_bytes);

// Which shard holds which tensor; their offsets and the files are not known yet.
Manifest PlanManifest(const CheckpointInfo& info, std::span<const Shard> shards);

// Notes where HDF5 put the tensors.
void LocateTensors(const Shard& shard, const ShardFrame& frame, Manifest* manifest);

// Creates `root`, if needed, and makes room in it. Throws Error(kResources) if a checkpoint with
// `bytes` bytes of tensors in `shards` shards, and with `files`, does not fit.
void PrepareRoot(const Path& root, int64_t bytes, size_t shards, std::span<const FileRecord> files);

// Where the checkpoint of a step is built.
Path BuildingPath(const Path& root, int64_t step);

// Writes a file durably, from parts that follow each other.
FileDigest WriteDurably(const Path& path, std::span<const std::span<const std::byte>> parts);

// Adds to the shards everything else that a checkpoint has: the index, `files` and, last, the
// manifest.
void FinishDirectory(const Path& directory, std::span<const FileRecord> files, Manifest* manifest);

// Gives a finished and synced directory its final name, and replaces a directory that has that
// name. After a crash, or if this throws Error(kResources), either the old or the new directory has
// the name; RemoveLeftovers (retention.h) clears what remains beside it.
void PutInPlace(const Path& building, const Path& final_path);

// Gives the directory its final name, removes the checkpoints that it makes superfluous, and logs
// the save.
void CommitDirectory(const Path& building, const Path& root, const Manifest& manifest,
                     const SaveOptions& options, Clock::time_point start);

}  // namespace syntra
