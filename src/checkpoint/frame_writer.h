// SPDX-License-Identifier: Apache-2.0
// Builds an HDF5 file in memory without the values of its datasets. So all file operations of a
// save are our own, and values are written to the disk without being copied first.
//
// HDF5 writing to a full disk fails in the middle of its flush and then crashes at exit. Its core
// driver would keep values, too: as much memory as the file, cleared and written once more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "base/crash_guard.h"
#include "checkpoint/hdf5.h"

namespace syntra {

// Everything in the file except the values, in whose places it has zeros.
class FileFrame {
 public:
  int64_t size() const { return size_; }
  // Reads the bytes at `offset`; zeros where nothing was written.
  void Read(int64_t offset, std::span<std::byte> bytes) const;

 private:
  friend struct FrameDriver;
  using Page = std::array<std::byte, 4096>;
  void Write(int64_t offset, std::span<const std::byte> bytes);

  std::map<int64_t, Page> pages_;  // by their numbers
  int64_t size_ = 0;
};

class FrameWriter {
 public:
  FrameWriter();
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  hid_t file() const { return file_.id(); }
  // Creates the groups that lead to `object`: "a" and "a/b" for "a/b/c".
  void CreateGroupsFor(const std::string& object);
  // Closes the file. The same content always gives the same bytes.
  FileFrame Finish();

 private:
  // HDF5 1.10 crashes in a few places where a single request is refused: H5AC_create,
  // H5L__create_ud, the copy of an attribute's name.
  const ShortageGuard guard_{"HDF5"};
  FileFrame frame_;
  std::set<std::string> groups_;
  Hdf5Handle file_;
};

// A link property list for UTF-8 names.
Hdf5Handle Utf8LinkProperties();

}  // namespace syntra
