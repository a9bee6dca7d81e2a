// SPDX-License-Identifier: Apache-2.0
// Tensors in safetensors files: model.safetensors in a directory or, of large models, several files
// and model.safetensors.index.json, which names the file of each tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "convert/safetensors_header.h"
#include "convert/tensor_source.h"

namespace syntra {

inline constexpr const char* kSafetensorsFile = "model.safetensors";
inline constexpr const char* kSafetensorsIndex = "model.safetensors.index.json";

// Reads them as f32, whatever their type: F16 and BF16 are exact, F64 is rounded.
class SafetensorsSource final : public TensorSource {
 public:
  // Opens the one file or, where there is none, the index and the files that it names. Of both,
  // transformers, too, reads the one file: saving a model anew leaves the index. Throws
  // Error(kCheckpoint) if there is neither, a file is not sound, or index and files do not agree.
  explicit SafetensorsSource(const Path& directory);

  void Read(std::string_view name, std::span<float> values) override;

 private:
  struct Place {
    size_t file;
    SafetensorsEntry entry;
  };
  // Adds the file's tensors; their names.
  std::vector<std::string> Add(const Path& path);
  void AddFilesOfIndex(const Path& directory);

  std::vector<std::pair<MappedFile, int64_t>> files_;  // and where the tensors' bytes begin
  std::map<std::string, Place, std::less<>> places_;
};

struct SafetensorsOptions {
  SafetensorsType type = SafetensorsType::kF32;  // that is written: F32 or BF16
  // Bytes of tensors in a file; a larger tensor has a file of its own.
  int64_t file_bytes = int64_t{5} << 30;
};

// Writes tensors into a directory that has none: one file if they fit into it, else several and the
// index. Files are synced; the caller syncs and renames the directory.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const Path& directory, const TensorSource::Types& tensors,
                    const SafetensorsOptions& options);

  // In this order, every tensor is written once.
  const std::vector<std::string>& order() const { return order_; }
  void Write(std::string_view name, std::span<const float> values);
  // After the last tensor.
  void Finish();

 private:
  struct Part {
    std::string name;
    SafetensorsHeader header;
  };
  void Plan(const TensorSource::Types& tensors);
  void NameParts();
  void CloseFile();

  Path directory_;
  SafetensorsOptions options_;
  std::vector<Part> parts_;
  std::vector<std::string> order_;
  size_t written_ = 0, part_ = 0;
  std::optional<File> file_;
};

}  // namespace syntra
