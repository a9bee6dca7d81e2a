// SPDX-License-Identifier: Apache-2.0
// Reads golden fixtures with the C interface of HDF5.
#include "tests/golden/reader.h"

#include <hdf5.h>

#include <algorithm>

#include "base/error.h"
#include "tests/base/source_directory.h"

namespace syntra {
namespace {

static_assert(sizeof(hid_t) == sizeof(int64_t));

// An identifier and the function that gives it back.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  // Fails unless `id` is valid; `call` is the HDF5 function that made it.
  Handle(hid_t id, Close close, const char* call) : id_(id), close_(close) {
    if (id < 0) Fail(ExitCode::kData, "{} failed", call);
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  Close close_;
};

void CheckStatus(int64_t status, const char* call) {
  if (status < 0) Fail(ExitCode::kData, "{} failed", call);
}

template <typename T>
GoldenArray<T> Read(hid_t file, const std::string& name, hid_t memory_type) {
  Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2");
  Handle stored_type(H5Dget_type(dataset), H5Tclose, "H5Dget_type");
  if (H5Tequal(stored_type, memory_type) <= 0) {
    Fail(ExitCode::kData, "the dataset is not stored in the type asked for");
  }
  Handle space(H5Dget_space(dataset), H5Sclose, "H5Dget_space");
  int rank = H5Sget_simple_extent_ndims(space);
  CheckStatus(rank, "H5Sget_simple_extent_ndims");
  std::vector<hsize_t> extents(rank);
  CheckStatus(H5Sget_simple_extent_dims(space, extents.data(), nullptr),
              "H5Sget_simple_extent_dims");

  GoldenArray<T> array;
  array.shape.assign(extents.begin(), extents.end());
  array.values.resize(H5Sget_simple_extent_npoints(space));
  CheckStatus(H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values.data()),
              "H5Dread");
  return array;
}

std::vector<std::string> MembersOf(hid_t group) {
  H5G_info_t info;
  CheckStatus(H5Gget_info(group, &info), "H5Gget_info");
  std::vector<std::string> names;
  for (hsize_t index = 0; index < info.nlinks; ++index) {
    auto name_at = [&](char* buffer, size_t size) {
      ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, buffer,
                                          size, H5P_DEFAULT);
      CheckStatus(length, "H5Lget_name_by_idx");
      return static_cast<size_t>(length);
    };
    std::string name(name_at(nullptr, 0), '\0');
    name_at(name.data(), name.size() + 1);
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void AddDatasets(hid_t group, const std::string& prefix, std::vector<std::string>* datasets) {
  for (const std::string& name : MembersOf(group)) {
    Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, "H5Oopen");
    if (H5Iget_type(object) == H5I_GROUP) {
      AddDatasets(object, prefix + name + "/", datasets);
    } else {
      datasets->push_back(prefix + name);
    }
  }
}

}  // namespace

GoldenFile::GoldenFile(const std::string& name)
    : path_(SourceDirectory() + "/tests/golden/" + name),
      file_(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {
  if (file_ < 0) {
    Fail(ExitCode::kData, "cannot open the fixture {}; see tests/golden/README.md", path_);
  }
}

GoldenFile::~GoldenFile() { H5Fclose(file_); }

GoldenArray<float> GoldenFile::Floats(const std::string& dataset) const {
  ErrorContext context([&] { return fmt::format("reading {} of {}", dataset, path_); });
  return Read<float>(file_, dataset, H5T_NATIVE_FLOAT);
}

GoldenArray<double> GoldenFile::Doubles(const std::string& dataset) const {
  ErrorContext context([&] { return fmt::format("reading {} of {}", dataset, path_); });
  return Read<double>(file_, dataset, H5T_NATIVE_DOUBLE);
}

GoldenArray<int32_t> GoldenFile::Ints(const std::string& dataset) const {
  ErrorContext context([&] { return fmt::format("reading {} of {}", dataset, path_); });
  return Read<int32_t>(file_, dataset, H5T_NATIVE_INT32);
}

std::vector<std::string> GoldenFile::Members(const std::string& group) const {
  ErrorContext context([&] { return fmt::format("listing {} of {}", group, path_); });
  Handle handle(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose, "H5Gopen2");
  return MembersOf(handle);
}

std::vector<std::string> GoldenFile::Datasets(const std::string& group) const {
  ErrorContext context([&] { return fmt::format("listing {} of {}", group, path_); });
  Handle handle(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose, "H5Gopen2");
  std::vector<std::string> datasets;
  AddDatasets(handle, "", &datasets);
  std::sort(datasets.begin(), datasets.end());
  return datasets;
}

std::string GoldenFile::Attribute(const std::string& group, const std::string& name) const {
  ErrorContext context(
      [&] { return fmt::format("reading attribute {} of {} of {}", name, group, path_); });
  Handle attribute(H5Aopen_by_name(file_, group.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                   H5Aclose, "H5Aopen_by_name");
  Handle type(H5Aget_type(attribute), H5Tclose, "H5Aget_type");
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0) {
    Fail(ExitCode::kData, "the attribute is not a string of fixed length");
  }
  std::string text(H5Tget_size(type), '\0');
  CheckStatus(H5Aread(attribute, type, text.data()), "H5Aread");
  return text.substr(0, text.find('\0'));
}

}  // namespace syntra
