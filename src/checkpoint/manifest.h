// SPDX-License-Identifier: Apache-2.0
// MANIFEST: what a checkpoint holds, where, and the digest of every file. format.md gives its
// bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "core/tensor.h"

namespace syntra {

struct CheckpointInfo {
  int64_t step = 0;
  std::string run_id;
  // Free-form UTF-8: resolved configuration, tokenizer and data digests, data position, seed, ...
  std::map<std::string, std::string> attributes;
};

// Throws Error(kCheckpoint) if the checkpoint, which is at `path`, has no such attribute.
const std::string& AttributeOf(const Path& path, const CheckpointInfo& info, std::string_view name);
// The attribute's value; "" if the checkpoint does not have it.
std::string AttributeOrNone(const CheckpointInfo& info, std::string_view name);

struct FileDigest {
  int64_t bytes;
  std::string digest;
};

struct TensorEntry {
  TensorType type;
  std::string file;
  int64_t offset = -1;  // of its first byte in the file; -1: not known yet
};

struct Manifest {
  static constexpr int64_t kVersion = 2;  // the one that is written
  // Version 1 lacks the tensors' offsets; they must be asked from HDF5.
  int64_t version = kVersion;
  CheckpointInfo info;
  std::map<std::string, FileDigest> files;
  std::map<std::string, TensorEntry, std::less<>> tensors;
};

// A sound manifest of a version that this program does not know: not damage, so never set aside.
class UnsupportedFormat : public Error {
 public:
  explicit UnsupportedFormat(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

// Names are paths of non-empty parts such as "parameters/encoder/layer_00/mixer/value". Throws
// Error(kCheckpoint) if one cannot be stored or is also the group of another.
void CheckTensorNames(const std::map<std::string, TensorEntry, std::less<>>& tensors);

// The same manifest always gives the same text. Throws Error(kCheckpoint) if text is not UTF-8.
std::string ToText(const Manifest& manifest);

// Throws Error(kCheckpoint) for anything that ToText cannot have written, in this version or in
// version 1. Every tensor then lies within its file, as far as offsets are known.
Manifest ParseManifest(std::string_view text);

}  // namespace syntra
