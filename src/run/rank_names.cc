// SPDX-License-Identifier: Apache-2.0
#include "run/rank_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"

namespace syntra {
namespace {

constexpr size_t kMostHosts = 20;

}  // namespace

std::string NameRanks(std::span<const int> ranks) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end; begin < ranks.size(); begin = end) {
    for (end = begin + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) ++end;
    const int first = ranks[begin], last = ranks[end - 1];
    parts.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
  }
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", Join(parts, ", "));
}

std::string NameRanks(std::span<const int> ranks, std::span<const std::string> hosts) {
  if (hosts.empty()) return NameRanks(ranks);
  std::vector<std::pair<std::string, std::vector<int>>> by_host;
  for (const int rank : ranks) {
    auto found =
        std::ranges::find(by_host, hosts[rank], [](const auto& each) { return each.first; });
    if (found == by_host.end()) found = by_host.insert(found, {hosts[rank], {}});
    found->second.push_back(rank);
  }
  std::vector<std::string> parts;
  for (const auto& [host, its_ranks] : by_host) {
    if (parts.size() == kMostHosts) {
      parts.push_back(fmt::format("and on {} more hosts", by_host.size() - kMostHosts));
      break;
    }
    parts.push_back(fmt::format("{} on {}", NameRanks(its_ranks), host));
  }
  return Join(parts, "; ");
}

}  // namespace syntra
