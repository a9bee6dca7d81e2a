// SPDX-License-Identifier: Apache-2.0
// Names inside a checkpoint root and inside one checkpoint.
#include "checkpoint/layout.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr std::string_view kStepPrefix = "step-";

}  // namespace

std::string StepName(int64_t step) { return fmt::format("{}{:010}", kStepPrefix, step); }

std::optional<int64_t> ParseStepName(std::string_view name) {
  int64_t step;
  if (!name.starts_with(kStepPrefix) || !ParseInt64(name.substr(kStepPrefix.size()), &step) ||
      step < 0 || StepName(step) != name) {
    return std::nullopt;
  }
  return step;
}

std::string ShardName(size_t index) { return fmt::format("shard-{:05}.h5", index); }

bool IsSafeFileName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::vector<std::string> DirectoryNames(const Path& directory) {
  std::vector<std::string> names;
  for (const Path& path : ListDirectory(directory)) names.push_back(path.filename().string());
  return names;
}

std::vector<CheckpointRef> ListCheckpoints(const Path& root) {
  std::vector<CheckpointRef> found;
  if (!Exists(root)) return found;
  if (!IsDirectory(root)) {
    Fail(ExitCode::kCheckpoint, "{} is not a directory of checkpoints", root.string());
  }
  for (const std::string& name : DirectoryNames(root)) {
    if (const auto step = ParseStepName(name)) found.push_back({root / name, *step});
  }
  std::sort(found.begin(), found.end(),
            [](const CheckpointRef& a, const CheckpointRef& b) { return a.step < b.step; });
  return found;
}

}  // namespace syntra
