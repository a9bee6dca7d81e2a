// SPDX-License-Identifier: Apache-2.0
// How messages name ranks.
#pragma once

#include <span>
#include <string>

namespace syntra {

// "rank 3", "ranks 1-4, 7". The ranks ascend.
std::string NameRanks(std::span<const int> ranks);

// "ranks 4-7 on node2; rank 9 on node3", hosts in the order of their first ranks, the twenty first.
// `hosts`: the host of each rank of the job. Empty: hosts are not named.
std::string NameRanks(std::span<const int> ranks, std::span<const std::string> hosts);

}  // namespace syntra
