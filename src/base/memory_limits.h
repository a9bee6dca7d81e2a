// SPDX-License-Identifier: Apache-2.0
// How much memory this machine, the control group and the process's limits allow, and how much this
// process has used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syntra {

struct MemoryLimit {
  int64_t bytes = 0;
  std::string who;      // what allows no more: "this machine has", "the control group allows"
  bool shared = false;  // by all processes of the host, not for each alone
};

// Every limit that exists and is known. For the address space it is the part that is left.
std::vector<MemoryLimit> MemoryLimits();

// The bytes of address space that `ulimit -v` allows this process; nothing if it sets no limit. May
// be called by signal handlers.
std::optional<int64_t> AddressSpaceLimit() noexcept;
// The bytes of address space that this process has taken; 0 if that cannot be found out.
int64_t AddressSpaceInUse();

// The largest resident memory of this process so far. Memory from before exec counts, too: at least
// what the process that started it had at that time.
int64_t PeakResidentBytes();

}  // namespace syntra
