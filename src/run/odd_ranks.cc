// SPDX-License-Identifier: Apache-2.0
#include "run/odd_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace syntra {
namespace {

constexpr size_t kNamedAtMost = 20;

// "rank 2 on node-b, rank 5 on node-c".
std::string Name(std::span<const size_t> ranks, std::span<const std::string> hosts) {
  std::vector<std::string> parts;
  for (const size_t rank : ranks.first(std::min(ranks.size(), kNamedAtMost))) {
    parts.push_back(fmt::format("rank {} on {}", rank, hosts[rank]));
  }
  if (ranks.size() > kNamedAtMost) {
    parts.push_back(fmt::format("{} more", ranks.size() - kNamedAtMost));
  }
  return Join(parts, ", ");
}

}  // namespace

OddRanks FindOddRanks(std::span<const uint64_t> digests, std::span<const std::string> hosts) {
  // By the lowest rank of each group, so that the text does not depend on digests.
  std::map<uint64_t, std::vector<size_t>> by_digest;
  for (size_t rank = 0; rank < digests.size(); ++rank) by_digest[digests[rank]].push_back(rank);
  std::vector<std::vector<size_t>> groups;
  for (auto& [digest, ranks] : by_digest) groups.push_back(std::move(ranks));
  std::ranges::sort(groups);

  const auto majority = std::ranges::find_if(
      groups, [&](const auto& ranks) { return 2 * ranks.size() > digests.size(); });
  if (majority == groups.end()) {
    std::vector<std::string> parts;
    for (const auto& ranks : groups) parts.push_back(Name(ranks, hosts));
    return {fmt::format("there is no telling who is right, for no majority agrees: {}",
                        Join(parts, "; ")),
            {}};
  }
  const size_t others = majority->size();
  groups.erase(majority);
  std::vector<size_t> odd;
  for (const auto& ranks : groups) odd.insert(odd.end(), ranks.begin(), ranks.end());
  std::ranges::sort(odd);
  OddRanks result{fmt::format("{} {} from the other {}", Name(odd, hosts),
                              odd.size() == 1 ? "differs" : "differ", others),
                  {}};
  for (const size_t rank : odd) result.hosts.push_back(hosts[rank]);
  std::ranges::sort(result.hosts);
  result.hosts.erase(std::unique(result.hosts.begin(), result.hosts.end()), result.hosts.end());
  return result;
}

}  // namespace syntra
