// SPDX-License-Identifier: Apache-2.0
// The configurations that the project ships.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace syntra {

inline std::vector<std::string> PresetPaths() {
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SYNTRA_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".textproto") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace syntra
