// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tensor_file.h"

#include <string>

#include "base/digest.h"
#include "base/error.h"
#include "base/lfs_pointer.h"
#include "checkpoint/hdf5_contents.h"
#include "checkpoint/superblock.h"

namespace syntra {
Checkpoint OpenTensorFile(const Path& path) {
  const ErrorContext context([&] { return "reading the tensors of " + path.string(); });
  if (!std::filesystem::is_regular_file(path)) {
    Fail(ExitCode::kCheckpoint, "{} is neither a directory nor a regular file", path.string());
  }
  File file = File::OpenForRead(path);
  RefuseLfsPointer(file, ExitCode::kCheckpoint);
  const std::string name = path.filename().string();
  const Buffer buffer(static_cast<size_t>(file.Size()), "a file of tensors");
  const std::span<std::byte> bytes(buffer.data(), buffer.size());
  if (!ReadFromStart(file, bytes) || !IsHdf5(bytes)) {
    Fail(ExitCode::kCheckpoint,
         "{} is neither a checkpoint nor an HDF5 file; of a model in safetensors files, name their "
         "directory",
         path.string());
  }
  Hdf5Contents contents = ContentsOfHdf5(bytes, name);
  if (contents.tensors.empty()) {
    std::string why;
    if (!contents.others.empty()) {
      const auto& [other, reason] = *contents.others.begin();
      why = fmt::format(": {} {}", other, reason);
      if (contents.others.size() > 1) {
        why += fmt::format(", and {} more are no tensors either", contents.others.size() - 1);
      }
    }
    Fail(ExitCode::kCheckpoint, "{} holds no tensors{}", path.string(), why);
  }
  VerifiedDirectory verified;
  verified.manifest.tensors = std::move(contents.tensors);
  verified.manifest.files[name] = {static_cast<int64_t>(bytes.size()), HexDigestOf(bytes)};
  verified.files.emplace(name, std::move(file));
  return {path, std::move(verified)};
}

}  // namespace syntra
