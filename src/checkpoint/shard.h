// SPDX-License-Identifier: Apache-2.0
// The HDF5 files of a checkpoint: shards that hold tensors, and the index that shows all of them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hdf5.h"
#include "checkpoint/manifest.h"
#include "checkpoint/tensor_record.h"
#include "core/tensor.h"

namespace syntra {

// HDF5 has no bfloat16: its bits are stored as unsigned integers with an attribute that says so.
inline constexpr const char* kTypeAttribute = "dtype";
hid_t StoredType(DType dtype);

// An HDF5 file without the values of its datasets.
struct ShardFrame {
  struct Piece {
    int64_t offset;
    std::vector<std::byte> content;
  };
  int64_t bytes = 0;             // of the whole file
  std::vector<int64_t> offsets;  // where in the file the values of each tensor begin
  std::vector<Piece> pieces;     // what lies between the values, in order
};

// Makes a file with one contiguous dataset for each tensor, under the tensor's name. It uses only
// the tensors' names and types.
//
// It asks HDF5 for the offsets while HDF5 makes the file. Listing the finished file, as tools do,
// would run code of HDF5 1.10 that crashes when one request for memory is refused
// (H5G__compact_iterate).
ShardFrame MakeShardFrame(std::span<TensorRecord* const> tensors);

// Names every tensor and links it to its shard. Links rather than virtual datasets: a reader that
// misses a shard gets an error, where a virtual dataset would silently show zeros.
std::vector<std::byte> MakeIndex(const std::map<std::string, TensorEntry, std::less<>>& tensors);

}  // namespace syntra
