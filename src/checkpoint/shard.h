// SPDX-License-Identifier: Apache-2.0
// The HDF5 files of a checkpoint: shards that hold tensors, and the index that shows all of them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hdf5.h"
#include "checkpoint/image_writer.h"
#include "checkpoint/manifest.h"
#include "checkpoint/tensor_record.h"
#include "core/tensor.h"

namespace syntra {

// HDF5 has no bfloat16: its bits are stored as unsigned integers with an attribute that says so.
inline constexpr const char* kTypeAttribute = "dtype";
hid_t StoredType(DType dtype);

struct ShardImage {
  FileImage file;
  std::vector<int64_t> offsets;  // where in the file the values of each tensor begin
};

// One contiguous dataset for each tensor, under the tensor's name.
//
// HDF5 is asked for the offsets while it writes. To list the finished file, as tools do, would run
// code of HDF5 1.10 that crashes when one request for memory is refused (H5G__compact_iterate).
ShardImage BuildShard(std::span<TensorRecord* const> tensors);

// Names every tensor and links it to its shard. Links rather than virtual datasets: a reader that
// misses a shard gets an error, where a virtual dataset would silently show zeros.
FileImage BuildIndex(const std::map<std::string, TensorEntry, std::less<>>& tensors);

}  // namespace syntra
