// SPDX-License-Identifier: Apache-2.0
// Reads the golden fixtures of this folder: named arrays and text attributes of an HDF5 file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syntra {

// A dataset's values in row-major order; a scalar has an empty shape and one value.
template <typename T>
struct GoldenArray {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

// Names inside the file are paths such as "parameters/encoder/norm"; "/" is the root group. Every
// failure is an Error(kData) that names the file and the object.
class GoldenFile {
 public:
  // `name` is a file of this folder, such as "t5_v1_0.h5".
  explicit GoldenFile(const std::string& name);
  ~GoldenFile();
  GoldenFile(const GoldenFile&) = delete;
  GoldenFile& operator=(const GoldenFile&) = delete;

  // The dataset must be stored in exactly the type asked for.
  GoldenArray<float> Floats(const std::string& dataset) const;
  GoldenArray<double> Doubles(const std::string& dataset) const;
  GoldenArray<int32_t> Ints(const std::string& dataset) const;

  // Groups and datasets directly in `group`, sorted.
  std::vector<std::string> Members(const std::string& group) const;
  // Every dataset below `group`, as paths relative to it, sorted.
  std::vector<std::string> Datasets(const std::string& group) const;

  // Text attribute of a group.
  std::string Attribute(const std::string& group, const std::string& name) const;

 private:
  std::string path_;
  int64_t file_;  // hid_t
};

}  // namespace syntra
