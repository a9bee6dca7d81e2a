// SPDX-License-Identifier: Apache-2.0
#include "train/held_out.h"

#include <set>
#include <vector>

#include "base/text.h"

namespace syntra {

std::string FilesNotHeldOut(std::span<const Path> training, std::span<const Path> validation) {
  constexpr size_t kNamedAtMost = 3;
  std::error_code code;  // a file that has gone is in neither list
  std::set<Path> learned;
  for (const Path& file : training) learned.insert(std::filesystem::canonical(file, code));
  std::vector<std::string> both;
  for (const Path& file : validation) {
    const Path place = std::filesystem::canonical(file, code);
    if (!code && learned.contains(place)) both.push_back(file.string());
  }
  if (both.empty()) return "";
  return fmt::format(
      "{} {} among the training files, too: the model is judged by what it has learned",
      JoinFirst(both, kNamedAtMost), both.size() == 1 ? "is" : "are");
}

}  // namespace syntra
