// SPDX-License-Identifier: Apache-2.0
#include "base/directories_below.h"

#include "base/error.h"

namespace syntra {
namespace {

constexpr int kLevels = 2;

void AddDirectories(const Path& directory, int levels,
                    const std::function<bool(const Path&)>& wanted,
                    std::vector<std::string>* found) {
  try {
    for (const Path& each : ListDirectory(directory)) {
      if (!IsDirectory(each)) continue;
      if (wanted(each)) {
        found->push_back(each.string());
      } else if (levels > 1) {
        AddDirectories(each, levels - 1, wanted, found);
      }
    }
  } catch (const Error&) {  // what is closed to us holds nothing of ours
  }
}

}  // namespace

std::vector<std::string> DirectoriesBelow(const Path& directory,
                                          const std::function<bool(const Path&)>& wanted) {
  std::vector<std::string> found;
  AddDirectories(directory, kLevels, wanted, &found);
  return found;
}

}  // namespace syntra
