// SPDX-License-Identifier: Apache-2.0
// What an HDF5 file holds and where. Tensors can then be read as plain bytes, without HDF5.
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
  // Everything else in the file by its name, and why it is no tensor: "is stored in chunks".
  std::map<std::string, std::string> others;
};

// The contents of an HDF5 file, given as its bytes; `file` becomes the file name of every entry.
// Throws Error(kCheckpoint) if it cannot be read, Error(kResources) if there is too little memory.
//
// HDF5 is not memory safe on files that were made to do harm, so this is only for bytes that this
// program has made itself.
Hdf5Contents ContentsOfOwnHdf5(std::span<const std::byte> bytes, const std::string& file);
// The same for bytes from anybody: HDF5 reads them in a process of its own, whose answer is checked
// like a MANIFEST. Throws Error(kCheckpoint).
Hdf5Contents ContentsOfForeignHdf5(std::span<const std::byte> bytes, const std::string& file);

}  // namespace syntra
