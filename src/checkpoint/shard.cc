// SPDX-License-Identifier: Apache-2.0
// Datasets of a shard and links of the index.
#include "checkpoint/shard.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "checkpoint/frame_writer.h"
#include "checkpoint/hdf5.h"

namespace syntra {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored as they lie in memory");

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

// The offset of its values in the file.
int64_t MakeDataset(hid_t file, const TensorRecord& tensor) {
  const Hdf5Handle creation(SYNTRA_HDF5(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  SYNTRA_HDF5(H5Pset_obj_track_times(creation.id(), false));
  // A place in the file, to which HDF5 writes nothing.
  SYNTRA_HDF5(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY));
  SYNTRA_HDF5(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER));
  const hid_t type = StoredType(tensor.type.dtype);
  const Hdf5Handle links = Utf8LinkProperties();
  const Hdf5Handle space = SpaceOf(tensor.type.shape);
  Hdf5Handle dataset(SYNTRA_HDF5(H5Dcreate2(file, tensor.name.c_str(), type, space.id(), links.id(),
                                            creation.id(), H5P_DEFAULT)),
                     H5Dclose);
  if (tensor.type.dtype == DType::kBF16) WriteTypeAttribute(dataset.id(), tensor.type.dtype);
  const haddr_t offset = H5Dget_offset(dataset.id());
  SYNTRA_CHECK(offset != HADDR_UNDEF, "HDF5 gave tensor {} no place", tensor.name);
  dataset.Close();
  return static_cast<int64_t>(offset);
}

struct ByteRange {
  int64_t begin, end;
};

// The pieces of the file between these ranges.
std::vector<ShardFrame::Piece> PiecesBetween(std::vector<ByteRange> values, const FileFrame& file) {
  std::ranges::sort(values, {}, &ByteRange::begin);
  values.push_back({file.size(), file.size()});
  std::vector<ShardFrame::Piece> pieces;
  int64_t end = 0;  // of the values before
  for (const ByteRange& next : values) {
    SYNTRA_CHECK(next.begin >= end && next.end <= file.size(), "values at {} of a file of {} bytes",
                 next.begin, file.size());
    if (next.begin > end) {
      pieces.push_back({end, std::vector<std::byte>(next.begin - end)});
      file.Read(end, pieces.back().content);
    }
    end = next.end;
  }
  return pieces;
}

}  // namespace

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

ShardFrame MakeShardFrame(std::span<TensorRecord* const> tensors) {
  const ErrorContext context([] { return "making the frame of a checkpoint file"; });
  FrameWriter writer;
  std::vector<int64_t> offsets;
  for (const TensorRecord* tensor : tensors) {
    writer.CreateGroupsFor(tensor->name);
    offsets.push_back(MakeDataset(writer.file(), *tensor));
  }
  const FileFrame file = writer.Finish();
  std::vector<ByteRange> values;
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.push_back({offsets[i], offsets[i] + static_cast<int64_t>(tensors[i]->type.bytes())});
  }
  std::vector<ShardFrame::Piece> pieces = PiecesBetween(std::move(values), file);
  return {file.size(), std::move(offsets), std::move(pieces)};
}

std::vector<std::byte> MakeIndex(const std::map<std::string, TensorEntry, std::less<>>& tensors) {
  FrameWriter writer;
  for (const auto& [name, entry] : tensors) {
    writer.CreateGroupsFor(name);
    SYNTRA_HDF5(H5Lcreate_external(entry.file.c_str(), ("/" + name).c_str(), writer.file(),
                                   name.c_str(), Utf8LinkProperties().id(), H5P_DEFAULT));
  }
  const FileFrame file = writer.Finish();
  std::vector<std::byte> bytes(file.size());
  file.Read(0, bytes);
  return bytes;
}

}  // namespace syntra
