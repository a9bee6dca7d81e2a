// SPDX-License-Identifier: Apache-2.0
#include "base/control_group.h"

#include <algorithm>
#include <functional>

#include "base/host.h"
#include "base/text.h"

namespace syntra {
namespace {

// The limit that the files in a group's folder set, if any.
template <typename T>
using LimitIn = std::function<std::optional<T>(const std::string& folder)>;

// The smallest limit of `group` and of the groups around it, up to `base`.
template <typename T>
std::optional<T> SmallestUpwards(const std::string& base, std::string group,
                                 const LimitIn<T>& limit_in) {
  std::optional<T> smallest;
  while (true) {
    if (const auto limit = limit_in(base + group)) {
      smallest = std::min(smallest.value_or(*limit), *limit);
    }
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return smallest;
    group.resize(slash);
  }
}

// The smallest limit in all groups of the process that `controller` is in charge of.
template <typename T>
std::optional<T> SmallestLimit(const std::string& root, const std::string& controller,
                               const LimitIn<T>& version_1, const LimitIn<T>& version_2) {
  std::optional<T> smallest;
  // Lines such as "0::/user.slice" (version 2) and "9:memory:/docker/1f" (version 1).
  for (const std::string& line : Split(KernelFile(root + "/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> parts = Split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string> controllers = Split(parts[1], ',');
    const bool is_version_2 = parts[0] == "0" && parts[1].empty();
    if (!is_version_2 && std::ranges::find(controllers, controller) == controllers.end()) continue;
    const std::string base = root + "/sys/fs/cgroup" + (is_version_2 ? "" : "/" + controller);
    const std::string group = parts[2] == "/" ? "" : parts[2];
    const auto found = SmallestUpwards(base, group, is_version_2 ? version_2 : version_1);
    if (found) smallest = std::min(smallest.value_or(*found), *found);
  }
  return smallest;
}

std::optional<int64_t> NumberIn(std::string_view text) {
  int64_t value = 0;
  return ParseInt64(StripSpace(text), &value) ? std::optional(value) : std::nullopt;
}

// Groups without a limit hold "max", or in version 1 a number near 2^63.
LimitIn<int64_t> BytesIn(const std::string& file) {
  return [file](const std::string& folder) {
    constexpr int64_t kNoLimit = int64_t{1} << 60;
    const auto bytes = NumberIn(KernelFile(folder + "/" + file));
    return bytes < kNoLimit ? bytes : std::nullopt;
  };
}

// Without a limit the time is "max", or in version 1 -1.
std::optional<double> CpusOf(std::string_view time, std::string_view period) {
  const auto quota = NumberIn(time), of = NumberIn(period);
  if (!quota || !of || *quota <= 0 || *of <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*of);
}

}  // namespace

std::optional<int64_t> ControlGroupMemory(const std::string& root) {
  return SmallestLimit<int64_t>(root, "memory", BytesIn("memory.limit_in_bytes"),
                                BytesIn("memory.max"));
}

std::optional<double> ControlGroupCpus(const std::string& root) {
  return SmallestLimit<double>(
      root, "cpu",
      [](const std::string& folder) {
        return CpusOf(KernelFile(folder + "/cpu.cfs_quota_us"),
                      KernelFile(folder + "/cpu.cfs_period_us"));
      },
      [](const std::string& folder) {
        const std::vector<std::string> parts = Split(KernelFile(folder + "/cpu.max"), ' ');
        return parts.size() == 2 ? CpusOf(parts[0], parts[1]) : std::nullopt;
      });
}

}  // namespace syntra
