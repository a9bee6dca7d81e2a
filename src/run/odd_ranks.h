// SPDX-License-Identifier: Apache-2.0
// Which ranks compute wrongly, where the replicas of all ought to be equal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syntra {

struct OddRanks {
  std::string text;                // "rank 2 on node-b differs from the other 7"
  std::vector<std::string> hosts;  // of the odd ranks, each once; empty: nobody knows who is right
};

// `digests` and `hosts`: of each rank; not all digests are equal. The ranks that differ from more
// than half of all are the odd ones. Without such a majority, which two ranks never have, the text
// lists who agrees with whom.
OddRanks FindOddRanks(std::span<const uint64_t> digests, std::span<const std::string> hosts);

}  // namespace syntra
