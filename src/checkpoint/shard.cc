// Datasets of a shard and links of the index.
#include "checkpoint/shard.h"

#include <array>
#include <bit>

#include "base/error.h"
#include "checkpoint/hdf5.h"
#include "checkpoint/superblock.h"

namespace syntra {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored as they lie in memory");

// HDF5 has no bfloat16: its bits are stored as unsigned integers with an attribute that says so.
constexpr const char* kTypeAttribute = "dtype";

hid_t StoredType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return H5T_IEEE_F32LE;
    case DType::kF64:
      return H5T_IEEE_F64LE;
    case DType::kI32:
      return H5T_STD_I32LE;
    case DType::kBF16:
      return H5T_STD_U16LE;
    case DType::kNone:
      break;
  }
  SYNTRA_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

Hdf5Handle SpaceOf(const Shape& shape) {
  if (shape.rank() == 0) return {SYNTRA_HDF5(H5Screate(H5S_SCALAR)), H5Sclose};
  std::array<hsize_t, Shape::kMaxRank> dims{};
  for (int i = 0; i < shape.rank(); ++i) dims[i] = static_cast<hsize_t>(shape[i]);
  return {SYNTRA_HDF5(H5Screate_simple(shape.rank(), dims.data(), nullptr)), H5Sclose};
}

void WriteTypeAttribute(hid_t dataset, DType dtype) {
  const std::string name(NameOf(dtype));
  const Hdf5Handle type(SYNTRA_HDF5(H5Tcopy(H5T_C_S1)), H5Tclose);
  SYNTRA_HDF5(H5Tset_size(type.id(), name.size()));
  SYNTRA_HDF5(H5Tset_strpad(type.id(), H5T_STR_NULLPAD));
  const Hdf5Handle space(SYNTRA_HDF5(H5Screate(H5S_SCALAR)), H5Sclose);
  const Hdf5Handle attribute(SYNTRA_HDF5(H5Acreate2(dataset, kTypeAttribute, type.id(), space.id(),
                                                    H5P_DEFAULT, H5P_DEFAULT)),
                             H5Aclose);
  SYNTRA_HDF5(H5Awrite(attribute.id(), type.id(), name.data()));
}

void WriteDataset(hid_t file, const TensorRecord& tensor) {
  const Hdf5Handle creation(SYNTRA_HDF5(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  SYNTRA_HDF5(H5Pset_obj_track_times(creation.id(), false));
  SYNTRA_HDF5(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER));
  const hid_t type = StoredType(tensor.type.dtype);
  const Hdf5Handle links = Utf8LinkProperties();
  const Hdf5Handle space = SpaceOf(tensor.type.shape);
  Hdf5Handle dataset(SYNTRA_HDF5(H5Dcreate2(file, tensor.name.c_str(), type, space.id(), links.id(),
                                            creation.id(), H5P_DEFAULT)),
                     H5Dclose);
  SYNTRA_HDF5(H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.data));
  if (tensor.type.dtype == DType::kBF16) WriteTypeAttribute(dataset.id(), tensor.type.dtype);
  dataset.Close();
}

// Callbacks that lend HDF5 the bytes of a span; `udata` is the span. Nothing is copied or freed.
void* LendBytes(size_t, H5FD_file_image_op_t, void* udata) {
  return const_cast<std::byte*>(static_cast<const std::span<const std::byte>*>(udata)->data());
}
void* CopyNothing(void* to, const void*, size_t, H5FD_file_image_op_t, void*) { return to; }
void* RefuseResize(void*, size_t, H5FD_file_image_op_t, void*) { return nullptr; }
herr_t FreeNothing(void*, H5FD_file_image_op_t, void*) { return 0; }
void* ShareUser(void* udata) { return udata; }
herr_t ReleaseUser(void*) { return 0; }

Hdf5Handle OpenImage(std::span<const std::byte>* image) {
  PrepareHdf5();
  if (SuperblockEndOfFile(*image) != image->size()) {
    Fail(ExitCode::kCheckpoint, "not an HDF5 file with superblock version 2 or 3 of {} bytes",
         image->size());
  }
  const Hdf5Handle access(SYNTRA_HDF5(H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
  SYNTRA_HDF5(H5Pset_fapl_core(access.id(), size_t{1} << 20, /*backing_store=*/false));
  H5FD_file_image_callbacks_t callbacks = {LendBytes, CopyNothing, RefuseResize, FreeNothing,
                                           ShareUser, ReleaseUser, image};
  SYNTRA_HDF5(H5Pset_file_image_callbacks(access.id(), &callbacks));
  SYNTRA_HDF5(H5Pset_file_image(access.id(), const_cast<std::byte*>(image->data()), image->size()));
  const std::string name = fmt::format("image-{}", static_cast<const void*>(image));
  return {SYNTRA_HDF5(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.id())), H5Fclose};
}

herr_t RefuseExternalLink(const char*, const char*, const char*, const char*, unsigned*, hid_t,
                          void*) {
  return -1;
}

}  // namespace

FileImage BuildShard(std::span<const TensorRecord* const> tensors) {
  size_t bytes = 0;
  for (const TensorRecord* tensor : tensors) bytes += tensor->type.bytes();
  ImageWriter writer(bytes);
  try {
    for (const TensorRecord* tensor : tensors) {
      writer.CreateGroupsFor(tensor->name);
      WriteDataset(writer.file(), *tensor);
    }
  } catch (const Error&) {
    writer.RequireMemory();
    throw;
  }
  return writer.Finish();
}

FileImage BuildIndex(const std::map<std::string, TensorEntry, std::less<>>& tensors) {
  ImageWriter writer(0);
  for (const auto& [name, entry] : tensors) {
    writer.CreateGroupsFor(name);
    SYNTRA_HDF5(H5Lcreate_external(entry.file.c_str(), ("/" + name).c_str(), writer.file(),
                                   name.c_str(), Utf8LinkProperties().id(), H5P_DEFAULT));
  }
  return writer.Finish();
}

ShardReader::ShardReader(std::span<const std::byte> image)
    : image_(std::make_unique<std::span<const std::byte>>(image)), file_(OpenImage(image_.get())) {}

ShardReader::~ShardReader() = default;

Hdf5Handle ShardReader::OpenChecked(const std::string& name, const TensorType& type) const {
  PrepareHdf5();
  const Hdf5Handle access(SYNTRA_HDF5(H5Pcreate(H5P_DATASET_ACCESS)), H5Pclose);
  SYNTRA_HDF5(H5Pset_elink_cb(access.id(), RefuseExternalLink, nullptr));
  Hdf5Handle dataset(SYNTRA_HDF5(H5Dopen2(file_.id(), name.c_str(), access.id())), H5Dclose);
  const Hdf5Handle creation(SYNTRA_HDF5(H5Dget_create_plist(dataset.id())), H5Pclose);
  if (SYNTRA_HDF5(H5Pget_layout(creation.id())) != H5D_CONTIGUOUS ||
      SYNTRA_HDF5(H5Pget_external_count(creation.id())) != 0) {
    Fail(ExitCode::kCheckpoint, "tensor {} is not stored contiguously in its file", name);
  }
  const Hdf5Handle stored_type(SYNTRA_HDF5(H5Dget_type(dataset.id())), H5Tclose);
  const Hdf5Handle stored_space(SYNTRA_HDF5(H5Dget_space(dataset.id())), H5Sclose);
  const Hdf5Handle space = SpaceOf(type.shape);
  if (SYNTRA_HDF5(H5Tequal(stored_type.id(), StoredType(type.dtype))) <= 0 ||
      SYNTRA_HDF5(H5Sextent_equal(stored_space.id(), space.id())) <= 0) {
    Fail(ExitCode::kCheckpoint, "tensor {} is not stored as {}, as the manifest says", name,
         ToString(type));
  }
  return dataset;
}

void ShardReader::CheckType(const std::string& name, const TensorType& type) const {
  static_cast<void>(OpenChecked(name, type));
}

void ShardReader::Read(const std::string& name, const TensorType& type,
                       std::span<std::byte> destination) const {
  SYNTRA_CHECK(destination.size() == type.bytes());
  const Hdf5Handle dataset = OpenChecked(name, type);
  SYNTRA_HDF5(H5Dread(dataset.id(), StoredType(type.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                      destination.data()));
}

}  // namespace syntra
