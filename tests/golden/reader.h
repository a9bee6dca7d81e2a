// SPDX-License-Identifier: Apache-2.0
// The golden fixtures of this folder: reads HDF5 files with named arrays and text attributes, and
// lists those of mixers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace syntra {

// A file of mixers, with a group for each case.
struct GoldenMixerFile {
  const char* name;
  size_t cases;
};

inline constexpr GoldenMixerFile kGoldenMixerFiles[] = {{"convolutions.h5", 14},
                                                        {"linear_mixers.h5", 18},
                                                        {"position_maps.h5", 12},
                                                        {"sparse_attention.h5", 35},
                                                        {"synthesizers.h5", 39}};

// A dataset's values in row-major order; a scalar has an empty shape and one value.
template <typename T>
struct GoldenArray {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

// Names inside the file are paths such as "parameters/encoder/norm"; "/" is the root group. Every
// failure throws an Error(kData) that names the file and the object.
class GoldenFile {
 public:
  // `name` is a file of this folder, such as "t5_v1_0.h5".
  explicit GoldenFile(const std::string& name);
  ~GoldenFile();
  GoldenFile(const GoldenFile&) = delete;
  GoldenFile& operator=(const GoldenFile&) = delete;

  // Each requires that the dataset is stored in exactly this type.
  GoldenArray<float> Floats(const std::string& dataset) const;
  GoldenArray<double> Doubles(const std::string& dataset) const;
  GoldenArray<int32_t> Ints(const std::string& dataset) const;

  // The names of groups and datasets directly in `group`, sorted.
  std::vector<std::string> Members(const std::string& group) const;
  // The paths of all datasets below `group`, relative to it, sorted.
  std::vector<std::string> Datasets(const std::string& group) const;

  // The text attribute `name` of a group.
  std::string Attribute(const std::string& group, const std::string& name) const;

 private:
  std::string path_;
  int64_t file_;  // hid_t
};

}  // namespace syntra
