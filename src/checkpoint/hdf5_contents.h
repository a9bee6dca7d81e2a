// SPDX-License-Identifier: Apache-2.0
// What an HDF5 file holds and where, so that tensors are then read as plain bytes, without HDF5.
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
  // What else has a name there, and why it is no tensor: "is stored in chunks or compressed".
  std::map<std::string, std::string> others;
};

// Of the bytes of an HDF5 file; entries get `file` as the name of theirs. Throws
// Error(kCheckpoint).
//
// HDF5 is not memory safe on files that were made to do harm, so only this program's own bytes are
// given to it here.
Hdf5Contents ContentsOfOwnHdf5(std::span<const std::byte> bytes, const std::string& file);
// Of anybody's bytes: HDF5 sees them in a process of its own, and what that answers is checked like
// a MANIFEST.
Hdf5Contents ContentsOfForeignHdf5(std::span<const std::byte> bytes, const std::string& file);

}  // namespace syntra
