// SPDX-License-Identifier: Apache-2.0
// Lists what an HDF5 file holds, and where. Tensors can then be read as plain bytes, without HDF5.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "checkpoint/manifest.h"

namespace syntra {

struct Hdf5Contents {
  // Each lies within the file.
  std::map<std::string, TensorEntry, std::less<>> tensors;
  // The other objects in the file by name, each with the reason why it is not a tensor: "is stored
  // in chunks".
  std::map<std::string, std::string> others;
};

// The contents of an HDF5 file, given as its bytes; `file` becomes the file name of every entry.
// HDF5 is not memory safe on hostile files, nor when memory is refused. So it reads them in a
// process of its own, whose answer is checked like a MANIFEST. Throws Error(kCheckpoint) if they
// cannot be read.
Hdf5Contents ContentsOfHdf5(std::span<const std::byte> bytes, const std::string& file);

}  // namespace syntra
