// SPDX-License-Identifier: Apache-2.0
#include "run/odd_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "run/rank_names.h"

namespace syntra {

OddRanks FindOddRanks(std::span<const uint64_t> digests, std::span<const std::string> hosts) {
  // By the lowest rank of each group, so that the text does not depend on digests.
  std::map<uint64_t, std::vector<int>> by_digest;
  for (int rank = 0; rank < std::ssize(digests); ++rank) by_digest[digests[rank]].push_back(rank);
  std::vector<std::vector<int>> groups;
  for (auto& [digest, ranks] : by_digest) groups.push_back(std::move(ranks));
  std::ranges::sort(groups);

  const auto majority = std::ranges::find_if(
      groups, [&](const auto& ranks) { return 2 * ranks.size() > digests.size(); });
  if (majority == groups.end()) {
    std::vector<std::string> parts;
    for (const auto& ranks : groups) parts.push_back(NameRanks(ranks, hosts));
    return {fmt::format("there is no telling who is right, for no majority agrees: {}",
                        Join(parts, " against ")),
            {}};
  }
  const size_t others = majority->size();
  groups.erase(majority);
  std::vector<int> odd;
  for (const auto& ranks : groups) odd.insert(odd.end(), ranks.begin(), ranks.end());
  std::ranges::sort(odd);
  OddRanks result{fmt::format("{} {} from the other {}", NameRanks(odd, hosts),
                              odd.size() == 1 ? "differs" : "differ", others),
                  {}};
  for (const int rank : odd) result.hosts.push_back(hosts[rank]);
  std::ranges::sort(result.hosts);
  result.hosts.erase(std::unique(result.hosts.begin(), result.hosts.end()), result.hosts.end());
  return result;
}

}  // namespace syntra
