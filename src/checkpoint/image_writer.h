// SPDX-License-Identifier: Apache-2.0
// Builds an HDF5 file in memory, so that the only file operations of a save are our own.
//
// HDF5 writing to a full disk fails in the middle of its flush and then crashes at exit; its own
// H5Fget_file_image returns unreadable images in the newest format. Instead the core driver keeps
// the file in memory and its buffer is taken over at the moment the closed file would free it.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "base/crash_guard.h"
#include "checkpoint/hdf5.h"

namespace syntra {

// Memory from the C allocator, which HDF5's callbacks must use to grow it.
struct FreeMemory {
  void operator()(std::byte* data) const;
};

struct FileImage {
  std::unique_ptr<std::byte[], FreeMemory> data;
  size_t size = 0;
  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

class ImageWriter {
 public:
  // `content_bytes`: about how much will be stored; decides how the buffer grows.
  explicit ImageWriter(size_t content_bytes);
  ~ImageWriter();
  ImageWriter(const ImageWriter&) = delete;
  ImageWriter& operator=(const ImageWriter&) = delete;

  hid_t file() const { return file_.id(); }
  // Creates the groups that lead to `object`: "a" and "a/b" for "a/b/c".
  void CreateGroupsFor(const std::string& object);
  // Closes the file. The same content always gives the same bytes.
  FileImage Finish();

 private:
  friend struct CaptureCallbacks;
  // HDF5 1.10 crashes in a few places where a single request is refused: H5AC_create,
  // H5L__create_ud, the copy of an attribute's name.
  const ShortageGuard guard_{"HDF5"};
  std::byte* captured_ = nullptr;
  size_t captured_size_ = 0;
  std::set<std::string> groups_;
  Hdf5Handle file_;
};

// A link property list for UTF-8 names.
Hdf5Handle Utf8LinkProperties();

}  // namespace syntra
