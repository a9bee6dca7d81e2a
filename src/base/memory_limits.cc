// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/text.h"

namespace syntra {
namespace {

// Groups without a limit hold "max", or in version 1 a number near 2^63.
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::optional<int64_t> NumberIn(const std::string& path) {
  int64_t value = 0;
  if (!ParseInt64(StripSpace(KernelFile(path)), &value) || value >= kNoLimit) return std::nullopt;
  return value;
}

// The smallest number in the files of this name in `group` and the groups around it, up to `base`.
std::optional<int64_t> SmallestUpwards(const std::string& base, std::string group,
                                       const std::string& file) {
  std::optional<int64_t> smallest;
  while (true) {
    if (const auto value = NumberIn(base + group + "/" + file)) {
      smallest = std::min(smallest.value_or(*value), *value);
    }
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return smallest;
    group.resize(slash);
  }
}

}  // namespace

std::optional<int64_t> AddressSpaceLimit() noexcept {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

int64_t AddressSpaceInUse() {
  int64_t pages = 0;
  ParseInt64(Split(KernelFile("/proc/self/statm"), ' ')[0], &pages);
  return pages * sysconf(_SC_PAGE_SIZE);
}

int64_t PeakResidentBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

std::string KernelFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  // A file of a process that ends meanwhile cannot be read any more; this way that throws nothing.
  text << file.rdbuf();
  return text.str();
}

std::optional<int64_t> ControlGroupMemory(const std::string& root) {
  // Lines such as "0::/user.slice" (version 2) and "9:memory:/docker/1f" (version 1).
  std::optional<int64_t> smallest;
  for (const std::string& line : Split(KernelFile(root + "/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> parts = Split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string> controllers = Split(parts[1], ',');
    const bool version_2 = parts[0] == "0" && parts[1].empty();
    if (!version_2 && std::ranges::find(controllers, "memory") == controllers.end()) continue;
    const std::string group = parts[2] == "/" ? "" : parts[2];
    const auto found =
        version_2 ? SmallestUpwards(root + "/sys/fs/cgroup", group, "memory.max")
                  : SmallestUpwards(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    if (found) smallest = std::min(smallest.value_or(*found), *found);
  }
  return smallest;
}

std::vector<MemoryLimit> MemoryLimits() {
  std::vector<MemoryLimit> limits{
      {int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE), "this machine has", true}};
  if (const auto group = ControlGroupMemory()) {
    limits.push_back({*group, "the control group allows", true});
  }
  if (const auto space = AddressSpaceLimit()) {
    const int64_t left = std::max<int64_t>(0, *space - AddressSpaceInUse());
    limits.push_back({left, "ulimit -v leaves", false});
  }
  return limits;
}

}  // namespace syntra
