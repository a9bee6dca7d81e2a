// SPDX-License-Identifier: Apache-2.0
// A virtual file driver of HDF5 that keeps pages.
#include "checkpoint/frame_writer.h"

#include <H5FDpublic.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

#include "base/error.h"
#include "checkpoint/superblock.h"

namespace syntra {
namespace {

// Calls visit(page, place in it, place in the span, bytes) for each page that [offset, offset +
// count) touches.
template <typename Visit>
void ForEachPage(int64_t page_bytes, int64_t offset, size_t count, const Visit& visit) {
  for (size_t done = 0; done < count;) {
    const int64_t page = (offset + static_cast<int64_t>(done)) / page_bytes;
    const int64_t place = (offset + static_cast<int64_t>(done)) % page_bytes;
    const size_t bytes = std::min(count - done, static_cast<size_t>(page_bytes - place));
    visit(page, place, done, bytes);
    done += bytes;
  }
}

}  // namespace

void FileFrame::Read(int64_t offset, std::span<std::byte> bytes) const {
  ForEachPage(sizeof(Page), offset, bytes.size(),
              [&](int64_t page, int64_t place, size_t at, size_t count) {
                const auto found = pages_.find(page);
                if (found == pages_.end()) {
                  std::ranges::fill(bytes.subspan(at, count), std::byte{0});
                } else {
                  std::memcpy(&bytes[at], &found->second[place], count);
                }
              });
}

void FileFrame::Write(int64_t offset, std::span<const std::byte> bytes) {
  ForEachPage(sizeof(Page), offset, bytes.size(),
              [&](int64_t page, int64_t place, size_t at, size_t count) {
                std::memcpy(&pages_[page][place], &bytes[at], count);
              });
  size_ = std::max(size_, offset + static_cast<int64_t>(bytes.size()));
}

// H5FD_t must come first: HDF5 sees nothing else of it.
struct FrameDriver {
  H5FD_t base;
  FileFrame* frame;
  haddr_t end_of_allocation;

  // The settings that H5Pset_driver takes.
  struct Settings {
    FileFrame* frame;
  };

  static FrameDriver& Of(H5FD_t* file) { return *reinterpret_cast<FrameDriver*>(file); }
  static const FrameDriver& Of(const H5FD_t* file) {
    return *reinterpret_cast<const FrameDriver*>(file);
  }

  static H5FD_t* Open(const char*, unsigned, hid_t access, haddr_t) {
    const auto* settings = static_cast<const Settings*>(H5Pget_driver_info(access));
    if (!settings) return nullptr;
    auto* driver = new (std::nothrow) FrameDriver{{}, settings->frame, 0};
    return driver ? &driver->base : nullptr;
  }
  static herr_t Close(H5FD_t* file) {
    delete &Of(file);
    return 0;
  }
  // Which of two files comes first; only the same frame is the same file.
  static int Compare(const H5FD_t* a, const H5FD_t* b) {
    const FileFrame *left = Of(a).frame, *right = Of(b).frame;
    return left == right ? 0 : std::less<>()(left, right) ? -1 : 1;
  }
  static herr_t Query(const H5FD_t*, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
  }
  static haddr_t EndOfAllocation(const H5FD_t* file, H5FD_mem_t) {
    return Of(file).end_of_allocation;
  }
  static herr_t SetEndOfAllocation(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    Of(file).end_of_allocation = end;
    return 0;
  }
  static haddr_t EndOfFile(const H5FD_t* file, H5FD_mem_t) {
    return static_cast<haddr_t>(Of(file).frame->size_);
  }
  static herr_t Read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t count, void* to) {
    Of(file).frame->Read(static_cast<int64_t>(offset), {static_cast<std::byte*>(to), count});
    return 0;
  }
  static herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t count,
                      const void* from) {
    try {
      Of(file).frame->Write(static_cast<int64_t>(offset),
                            {static_cast<const std::byte*>(from), count});
      return 0;
    } catch (const std::bad_alloc&) {
      errno = ENOMEM;
      return -1;
    }
  }
  static herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
    Of(file).frame->size_ = static_cast<int64_t>(Of(file).end_of_allocation);
    return 0;
  }
};

namespace {

hid_t RegisterDriver() {
  static const H5FD_class_t kClass = [] {
    H5FD_class_t row = {};
#if H5_VERSION_GE(1, 14, 0)
    row.version = H5FD_CLASS_VERSION;
    row.value = static_cast<H5FD_class_value_t>(512);  // from 512 on they are for tests and own use
#endif
    row.name = "syntra_frame";
    row.maxaddr = static_cast<haddr_t>(INT64_MAX);
    row.fc_degree = H5F_CLOSE_WEAK;
    row.fapl_size = sizeof(FrameDriver::Settings);
    row.open = FrameDriver::Open;
    row.close = FrameDriver::Close;
    row.cmp = FrameDriver::Compare;
    row.query = FrameDriver::Query;
    row.get_eoa = FrameDriver::EndOfAllocation;
    row.set_eoa = FrameDriver::SetEndOfAllocation;
    row.get_eof = FrameDriver::EndOfFile;
    row.read = FrameDriver::Read;
    row.write = FrameDriver::Write;
    row.truncate = FrameDriver::Truncate;
    const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
    std::ranges::copy(map, row.fl_map);
    return row;
  }();
  return H5FDregister(&kClass);
}

Hdf5Handle CreateFile(FileFrame* frame) {
  PrepareHdf5();
  const Hdf5Handle driver(SYNTRA_HDF5(RegisterDriver()), H5FDunregister);
  const Hdf5Handle access(SYNTRA_HDF5(H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
  const FrameDriver::Settings settings{frame};
  SYNTRA_HDF5(H5Pset_driver(access.id(), driver.id(), &settings));
  // The newest format that HDF5 1.10 reads, whatever version is linked.
  SYNTRA_HDF5(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110));
  // The alignment of datasets that are at least as large, for readers that map.
  constexpr hsize_t kAlignment = 4096;
  SYNTRA_HDF5(H5Pset_alignment(access.id(), kAlignment, kAlignment));
  const Hdf5Handle creation(SYNTRA_HDF5(H5Pcreate(H5P_FILE_CREATE)), H5Pclose);
  SYNTRA_HDF5(H5Pset_obj_track_times(creation.id(), false));
  return {SYNTRA_HDF5(H5Fcreate("frame", H5F_ACC_TRUNC, creation.id(), access.id())), H5Fclose};
}

}  // namespace

FrameWriter::FrameWriter() : file_(CreateFile(&frame_)) {}

void FrameWriter::CreateGroupsFor(const std::string& object) {
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

FileFrame FrameWriter::Finish() {
  file_.Close();
  std::array<std::byte, 64> start{};
  frame_.Read(0, start);
  const auto end = SuperblockEndOfFile(start);
  SYNTRA_CHECK(end && static_cast<int64_t>(*end) == frame_.size(),
               "a file of {} bytes has no valid superblock", frame_.size());
  return std::move(frame_);
}

Hdf5Handle Utf8LinkProperties() {
  Hdf5Handle properties(SYNTRA_HDF5(H5Pcreate(H5P_LINK_CREATE)), H5Pclose);
  SYNTRA_HDF5(H5Pset_char_encoding(properties.id(), H5T_CSET_UTF8));
  return properties;
}

}  // namespace syntra
