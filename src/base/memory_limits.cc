// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/control_group.h"
#include "base/host.h"
#include "base/text.h"

namespace syntra {

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
