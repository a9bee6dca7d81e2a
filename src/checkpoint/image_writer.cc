// SPDX-License-Identifier: Apache-2.0
// The HDF5 core driver with callbacks that hand over its buffer.
#include "checkpoint/image_writer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "checkpoint/superblock.h"
#include "core/buffer.h"

namespace syntra {

void FreeMemory::operator()(std::byte* data) const { std::free(data); }

// C functions for H5Pset_file_image_callbacks; `udata` is the ImageWriter.
struct CaptureCallbacks {
  static void* Malloc(size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); }
  static void* Copy(void* to, const void* from, size_t size, H5FD_file_image_op_t, void*) {
    return std::memcpy(to, from, size);
  }
  static void* Resize(void* data, size_t size, H5FD_file_image_op_t, void* udata) {
    void* resized = std::realloc(data, size);
    if (resized) static_cast<ImageWriter*>(udata)->captured_size_ = size;
    return resized;
  }
  static herr_t Free(void* data, H5FD_file_image_op_t operation, void* udata) {
    if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
      static_cast<ImageWriter*>(udata)->captured_ = static_cast<std::byte*>(data);
    } else {
      std::free(data);
    }
    return 0;
  }
  static void* ShareUser(void* udata) { return udata; }
  static herr_t ReleaseUser(void*) { return 0; }
};

namespace {

constexpr size_t kAlignment = 4096;  // of datasets that are at least as large, for readers that map

Hdf5Handle CreateFile(ImageWriter* writer, size_t content_bytes) {
  PrepareHdf5();
  const Hdf5Handle access(SYNTRA_HDF5(H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
  // Growing in sixteenths keeps the buffer near the content's size with few moves.
  const size_t increment =
      AlignUp(std::max<size_t>(content_bytes / 16, size_t{64} << 10), kAlignment);
  SYNTRA_HDF5(H5Pset_fapl_core(access.id(), increment, /*backing_store=*/false));
  // The newest format that HDF5 1.10 reads, whatever version is linked.
  SYNTRA_HDF5(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110));
  SYNTRA_HDF5(H5Pset_alignment(access.id(), kAlignment, kAlignment));
  H5FD_file_image_callbacks_t callbacks = {CaptureCallbacks::Malloc,
                                           CaptureCallbacks::Copy,
                                           CaptureCallbacks::Resize,
                                           CaptureCallbacks::Free,
                                           CaptureCallbacks::ShareUser,
                                           CaptureCallbacks::ReleaseUser,
                                           writer};
  SYNTRA_HDF5(H5Pset_file_image_callbacks(access.id(), &callbacks));
  const Hdf5Handle creation(SYNTRA_HDF5(H5Pcreate(H5P_FILE_CREATE)), H5Pclose);
  SYNTRA_HDF5(H5Pset_obj_track_times(creation.id(), false));
  // HDF5 takes two core files of one name for the same file.
  const std::string name = fmt::format("image-{}", static_cast<const void*>(writer));
  return {SYNTRA_HDF5(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation.id(), access.id())),
          H5Fclose};
}

}  // namespace

ImageWriter::ImageWriter(size_t content_bytes) : file_(CreateFile(this, content_bytes)) {}

ImageWriter::~ImageWriter() {
  // Closing may still hand the buffer over, so it must happen before the buffer is freed.
  file_ = Hdf5Handle(H5I_INVALID_HID, H5Fclose);
  std::free(captured_);
}

void ImageWriter::CreateGroupsFor(const std::string& object) {
  for (size_t slash = object.find('/'); slash != object.npos; slash = object.find('/', slash + 1)) {
    const std::string group = object.substr(0, slash);
    if (!groups_.insert(group).second) continue;
    const Hdf5Handle creation(SYNTRA_HDF5(H5Pcreate(H5P_GROUP_CREATE)), H5Pclose);
    SYNTRA_HDF5(H5Pset_obj_track_times(creation.id(), false));
    const Hdf5Handle created(
        SYNTRA_HDF5(H5Gcreate2(file(), group.c_str(), Utf8LinkProperties().id(), creation.id(),
                               H5P_DEFAULT)),
        H5Gclose);
  }
}

FileImage ImageWriter::Finish() {
  file_.Close();
  SYNTRA_CHECK(captured_, "HDF5 closed the file without releasing its buffer");
  FileImage image{std::unique_ptr<std::byte[], FreeMemory>(std::exchange(captured_, nullptr)), 0};
  const auto end = SuperblockEndOfFile({image.data.get(), captured_size_});
  SYNTRA_CHECK(end && *end <= captured_size_, "the image of {} bytes has no valid superblock",
               captured_size_);
  image.size = *end;
  return image;
}

Hdf5Handle Utf8LinkProperties() {
  Hdf5Handle properties(SYNTRA_HDF5(H5Pcreate(H5P_LINK_CREATE)), H5Pclose);
  SYNTRA_HDF5(H5Pset_char_encoding(properties.id(), H5T_CSET_UTF8));
  return properties;
}

}  // namespace syntra
