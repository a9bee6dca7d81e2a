// Reading one checkpoint.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "checkpoint/verify.h"
#include "core/tensor.h"

namespace syntra {

// An open, verified checkpoint. It keeps its files open, so a run that prunes the directory
// meanwhile does no harm. One shard at a time is in memory; reading in the order of tensors() loads
// each once.
class Checkpoint {
 public:
  // `directory` is .../step-NNNNNNNNNN. Verifies every file; throws Error(kCheckpoint) naming the
  // first that is damaged.
  explicit Checkpoint(const Path& directory);
  Checkpoint(const Path& directory, VerifiedDirectory verified);
  Checkpoint(Checkpoint&& other) noexcept;
  Checkpoint& operator=(Checkpoint&& other) noexcept;
  ~Checkpoint();

  const Path& path() const { return path_; }
  const CheckpointInfo& info() const { return verified_.manifest.info; }
  // By name, each with `type` (and the file that holds it).
  const std::map<std::string, TensorEntry, std::less<>>& tensors() const {
    return verified_.manifest.tensors;
  }
  // nullptr if there is no such tensor.
  const TensorType* Find(std::string_view name) const;

  // Both throw Error(kCheckpoint) if there is no such tensor or it does not fit exactly: the view
  // must be a host view of the same dtype and shape, the bytes as many as the stored type has.
  void Read(std::string_view name, const TensorView& destination);
  void Read(std::string_view name, std::span<std::byte> destination);

 private:
  struct LoadedShard;
  const TensorEntry& Get(std::string_view name) const;
  // The bytes given to HDF5 are the bytes whose digest was compared, whatever happens to the file.
  const LoadedShard& Load(const std::string& file);

  Path path_;
  VerifiedDirectory verified_;
  std::unique_ptr<LoadedShard> loaded_;
};

}  // namespace syntra
