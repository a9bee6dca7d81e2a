// The HDF5 files of a checkpoint: shards that hold tensors, and the index that shows all of them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/image_writer.h"
#include "checkpoint/manifest.h"
#include "checkpoint/tensor_record.h"
#include "core/buffer.h"
#include "core/tensor.h"

namespace syntra {

// One contiguous dataset for each tensor, under the tensor's name.
FileImage BuildShard(std::span<const TensorRecord* const> tensors);

// Names every tensor and links it to its shard. Links rather than virtual datasets: a reader that
// misses a shard gets an error, where a virtual dataset would silently show zeros.
FileImage BuildIndex(const std::map<std::string, TensorEntry, std::less<>>& tensors);

// Reads tensors from the bytes of one shard without touching any file. Throws Error(kCheckpoint).
class ShardReader {
 public:
  // The bytes must outlive the reader.
  explicit ShardReader(std::span<const std::byte> image);
  ~ShardReader();

  // The stored type must be exactly `type`.
  void CheckType(const std::string& name, const TensorType& type) const;
  // Checks the type, then fills `destination`, which has type.bytes() bytes.
  void Read(const std::string& name, const TensorType& type,
            std::span<std::byte> destination) const;

 private:
  Hdf5Handle OpenChecked(const std::string& name, const TensorType& type) const;
  std::unique_ptr<std::span<const std::byte>> image_;  // its address is known to HDF5
  Hdf5Handle file_;
};

}  // namespace syntra
