// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/hdf5_contents.h"

#include <array>
#include <exception>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/contained.h"
#include "checkpoint/hdf5.h"
#include "checkpoint/shard.h"

namespace syntra {
namespace {

// Callbacks that lend HDF5 the bytes of a span; `udata` is the span. Nothing is copied or freed.
void* LendBytes(size_t, H5FD_file_image_op_t, void* udata) {
  return const_cast<std::byte*>(static_cast<const std::span<const std::byte>*>(udata)->data());
}
void* CopyNothing(void* to, const void*, size_t, H5FD_file_image_op_t, void*) { return to; }
void* RefuseResize(void*, size_t, H5FD_file_image_op_t, void*) { return nullptr; }
herr_t FreeNothing(void*, H5FD_file_image_op_t, void*) { return 0; }
void* ShareUser(void* udata) { return udata; }
herr_t ReleaseUser(void*) { return 0; }

// The span must outlive the handle.
Hdf5Handle OpenImage(std::span<const std::byte>* image) {
  PrepareHdf5();
  const Hdf5Handle access(SYNTRA_HDF5(H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
  SYNTRA_HDF5(H5Pset_fapl_core(access.id(), size_t{1} << 20, /*backing_store=*/false));
  H5FD_file_image_callbacks_t callbacks = {LendBytes, CopyNothing, RefuseResize, FreeNothing,
                                           ShareUser, ReleaseUser, image};
  SYNTRA_HDF5(H5Pset_file_image_callbacks(access.id(), &callbacks));
  SYNTRA_HDF5(H5Pset_file_image(access.id(), const_cast<std::byte*>(image->data()), image->size()));
  const std::string name = fmt::format("image-{}", static_cast<const void*>(image));
  return {SYNTRA_HDF5(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.id())), H5Fclose};
}

bool HasTypeAttribute(hid_t dataset, std::string_view wanted) {
  if (SYNTRA_HDF5(H5Aexists(dataset, kTypeAttribute)) <= 0) return false;
  const Hdf5Handle attribute(SYNTRA_HDF5(H5Aopen(dataset, kTypeAttribute, H5P_DEFAULT)), H5Aclose);
  const Hdf5Handle type(SYNTRA_HDF5(H5Aget_type(attribute.id())), H5Tclose);
  const Hdf5Handle space(SYNTRA_HDF5(H5Aget_space(attribute.id())), H5Sclose);
  if (SYNTRA_HDF5(H5Tget_class(type.id())) != H5T_STRING ||
      SYNTRA_HDF5(H5Tis_variable_str(type.id())) > 0 || H5Tget_size(type.id()) != wanted.size() ||
      H5Sget_simple_extent_npoints(space.id()) != 1) {
    return false;
  }
  std::string text(wanted.size(), '\0');
  SYNTRA_HDF5(H5Aread(attribute.id(), type.id(), text.data()));
  return text == wanted;
}

DType StoredDType(hid_t dataset) {
  const Hdf5Handle type(SYNTRA_HDF5(H5Dget_type(dataset)), H5Tclose);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI32}) {
    if (SYNTRA_HDF5(H5Tequal(type.id(), StoredType(dtype))) <= 0) continue;
    // Other unsigned integers of 16 bits are no tensor.
    const bool marked = dtype != DType::kBF16 || HasTypeAttribute(dataset, NameOf(dtype));
    return marked ? dtype : DType::kNone;
  }
  return DType::kNone;
}

std::optional<Shape> ShapeOf(hid_t dataset) {
  const Hdf5Handle space(SYNTRA_HDF5(H5Dget_space(dataset)), H5Sclose);
  if (H5Sget_simple_extent_type(space.id()) == H5S_SCALAR) return Shape();
  const int rank = SYNTRA_HDF5(H5Sget_simple_extent_ndims(space.id()));
  if (rank < 1 || rank > Shape::kMaxRank) return std::nullopt;
  std::array<hsize_t, Shape::kMaxRank> extents{};
  SYNTRA_HDF5(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr));
  std::array<int64_t, Shape::kMaxRank> dims{};
  int64_t size = sizeof(double);
  for (int i = 0; i < rank; ++i) {
    dims[i] = static_cast<int64_t>(extents[i]);
    if (dims[i] <= 0 || __builtin_mul_overflow(size, dims[i], &size)) return std::nullopt;
  }
  return Shape(std::span<const int64_t>(dims).first(rank));
}

bool IsContiguous(hid_t dataset) {
  const Hdf5Handle creation(SYNTRA_HDF5(H5Dget_create_plist(dataset)), H5Pclose);
  return SYNTRA_HDF5(H5Pget_layout(creation.id())) == H5D_CONTIGUOUS &&
         SYNTRA_HDF5(H5Pget_external_count(creation.id())) == 0;
}

// The file's name where it is all that there is.
constexpr const char* kAlone = "file.h5";

// Collects every link of a file.
class Visitor {
 public:
  explicit Visitor(Hdf5Contents* contents) : contents_(contents) {}

  void Visit(hid_t root) {
    try {
      SYNTRA_HDF5(H5Lvisit(root, H5_INDEX_NAME, H5_ITER_INC, Add, this));
    } catch (const Error&) {
      if (error_) std::rethrow_exception(error_);
      throw;
    }
  }

 private:
  // No exception may pass through HDF5, which is C.
  static herr_t Add(hid_t group, const char* name, const H5L_info_t* info, void* self) noexcept {
    auto& visitor = *static_cast<Visitor*>(self);
    try {
      const std::string problem = visitor.AddTensor(group, name, *info);
      if (!problem.empty()) visitor.contents_->others[Printable(name)] = problem;
      return 0;
    } catch (...) {
      visitor.error_ = std::current_exception();
      return -1;
    }
  }

  // Why there is no tensor at the link, or "".
  std::string AddTensor(hid_t group, const char* name, const H5L_info_t& info) {
    if (info.type != H5L_TYPE_HARD) return "is a link to another place or file";
    const Hdf5Handle object(SYNTRA_HDF5(H5Oopen(group, name, H5P_DEFAULT)), H5Oclose);
    if (H5Iget_type(object.id()) == H5I_GROUP) return "";
    if (H5Iget_type(object.id()) != H5I_DATASET) return "is no dataset";
    if (Printable(name) != name) return "has a name with characters that cannot be printed";
    if (!IsContiguous(object.id())) return "is stored in chunks, compressed or in another file";
    const DType dtype = StoredDType(object.id());
    if (dtype == DType::kNone) return "is not of little-endian f32, f64 or i32, nor marked bf16";
    const std::optional<Shape> shape = ShapeOf(object.id());
    if (!shape)
      return fmt::format("is empty, too large or of more than {} dimensions", Shape::kMaxRank);
    const auto offset = static_cast<int64_t>(H5Dget_offset(object.id()));
    if (offset < 0) return "has no values";
    contents_->tensors[name] = {{dtype, *shape}, kAlone, offset};
    return "";
  }

  Hdf5Contents* contents_;
  std::exception_ptr error_;
};

// A file as a manifest that holds it alone.
Manifest ManifestOf(Hdf5Contents contents, size_t bytes) {
  Manifest manifest;
  manifest.info.attributes = std::move(contents.others);
  manifest.files[kAlone] = {static_cast<int64_t>(bytes), std::string(32, '0')};
  manifest.tensors = std::move(contents.tensors);
  return manifest;
}

// Only in a process of its own: HDF5 may crash on these bytes.
Hdf5Contents ListContents(std::span<const std::byte> bytes) {
  Hdf5Contents contents;
  const Hdf5Handle handle = OpenImage(&bytes);
  Visitor(&contents).Visit(handle.id());
  return contents;
}

}  // namespace

Hdf5Contents ContentsOfHdf5(std::span<const std::byte> bytes, const std::string& file) {
  const std::string answer =
      RunContained("HDF5", [&] { return ToText(ManifestOf(ListContents(bytes), bytes.size())); });
  Manifest manifest = ParseManifest(answer);
  for (auto& [name, entry] : manifest.tensors) entry.file = file;
  return {std::move(manifest.tensors), std::move(manifest.info.attributes)};
}

}  // namespace syntra
