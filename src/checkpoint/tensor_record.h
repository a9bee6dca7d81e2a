// SPDX-License-Identifier: Apache-2.0
// The data that the caller passes to a save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace syntra {

// A host tensor to be saved, or the part of one that a process holds: dense, row-major. The caller
// keeps `data` alive and unchanged.
struct TensorRecord {
  std::string name;
  TensorType type;  // of `data`
  const std::byte* data = nullptr;
  int64_t begin = 0;  // the element of the whole tensor that comes first in `data`
};

// A small file that lies beside the tensors; the caller keeps `content` alive.
struct FileRecord {
  std::string name;
  std::string_view content;
};

}  // namespace syntra
