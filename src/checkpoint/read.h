// SPDX-License-Identifier: Apache-2.0
// Reading one checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "checkpoint/verify.h"
#include "core/tensor.h"

namespace syntra {

// Where the tensor of this name is read to: a host view of the tensor's type.
struct TensorDestination {
  std::string name;
  TensorView view;
};

// An open, verified checkpoint. It keeps its files open, so a run that prunes the directory
// meanwhile does no harm. One shard at a time is in memory; reading in the order of tensors() loads
// each once.
class Checkpoint {
 public:
  // Verifies every file; throws Error(kCheckpoint) naming the first that is damaged. A directory
  // that is named step-NNNNNNNNNN must hold that step; a copy may have any name.
  explicit Checkpoint(const Path& directory);
  // Messages name the checkpoint by `path`.
  Checkpoint(const Path& path, VerifiedDirectory verified);
  Checkpoint(Checkpoint&& other) noexcept;
  Checkpoint& operator=(Checkpoint&& other) noexcept;
  ~Checkpoint();

  const Path& path() const { return path_; }
  const CheckpointInfo& info() const { return verified_.manifest.info; }
  // By name, each with its type and place.
  const std::map<std::string, TensorEntry, std::less<>>& tensors() const {
    return verified_.manifest.tensors;
  }
  // All but the manifest, with their sizes.
  const std::map<std::string, FileDigest>& files() const { return verified_.manifest.files; }
  bool HasFile(const std::string& name) const { return verified_.manifest.files.contains(name); }
  // The content of a file that is stored beside the tensors, such as the tokenizer's; nullopt if
  // there is none of that name. Throws Error(kCheckpoint) if the file has changed since it was
  // verified.
  std::optional<std::string> ReadFile(const std::string& name);
  // nullptr if there is no such tensor.
  const TensorType* Find(std::string_view name) const;

  // All three throw Error(kCheckpoint) if there is no such tensor or it does not fit exactly. A
  // view must be in host memory and of the stored dtype and shape; a span has the stored type's
  // bytes.
  void Read(std::string_view name, const TensorView& destination);
  void Read(std::string_view name, std::span<std::byte> destination);
  // Several tensors at once, none twice, as fast as the files come and without memory for them. If
  // it throws, what was read so far must not be used.
  void Read(std::span<const TensorDestination> destinations);

 private:
  struct LoadedFile;
  const TensorEntry& Get(std::string_view name) const;
  const TensorEntry& GetFor(std::string_view name, const TensorView& destination) const;
  // Returns the very bytes whose digest was compared, whatever happens to the file.
  const Buffer& Load(const std::string& name);

  Path path_;
  VerifiedDirectory verified_;
  std::unique_ptr<LoadedFile> loaded_;
};

// Steps that the optimizer of the checkpoint's run had made before the run's first one. Throws
// Error(kCheckpoint) if the attribute is not a number.
int64_t OptimizerStepsBefore(const Checkpoint& checkpoint);

}  // namespace syntra
