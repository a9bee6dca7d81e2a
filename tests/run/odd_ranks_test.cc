// SPDX-License-Identifier: Apache-2.0
#include "run/odd_ranks.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

using Hosts = std::vector<std::string>;

TEST(OddRanks, TheMinorityIsNamedWithItsHosts) {
  const OddRanks one = FindOddRanks(std::vector<uint64_t>{7, 7, 3, 7}, Hosts{"a", "a", "b", "b"});
  EXPECT_EQ(one.text, "rank 2 on b differs from the other 3");
  EXPECT_EQ(one.hosts, Hosts{"b"});
  // They need not agree with each other; a host is named once.
  const OddRanks three = FindOddRanks(std::vector<uint64_t>{1, 7, 2, 7, 7, 1, 7},
                                      Hosts{"c", "a", "b", "a", "a", "c", "b"});
  EXPECT_EQ(three.text, "ranks 0, 5 on c; rank 2 on b differ from the other 4");
  EXPECT_EQ(three.hosts, (Hosts{"b", "c"}));
}

TEST(OddRanks, WithoutAMajorityNobodyIsBlamed) {
  const OddRanks two = FindOddRanks(std::vector<uint64_t>{9, 1}, Hosts{"a", "b"});
  EXPECT_EQ(two.text,
            "there is no telling who is right, for no majority agrees: rank 0 on a against rank 1 "
            "on b");
  EXPECT_TRUE(two.hosts.empty());
  // Half is no majority, and neither is the largest of three groups.
  EXPECT_TRUE(
      FindOddRanks(std::vector<uint64_t>{1, 1, 2, 2}, Hosts{"a", "a", "b", "b"}).hosts.empty());
  const OddRanks groups =
      FindOddRanks(std::vector<uint64_t>{3, 3, 2, 1}, Hosts{"a", "a", "b", "c"});
  EXPECT_EQ(groups.text,
            "there is no telling who is right, for no majority agrees: ranks 0-1 on a against "
            "rank 2 on b against rank 3 on c");
}

TEST(OddRanks, ManyOfOneHostAreARange) {
  std::vector<uint64_t> digests(101, 1);
  std::fill_n(digests.begin(), 30, 2);
  const OddRanks odd = FindOddRanks(digests, Hosts(101, "a"));
  EXPECT_EQ(odd.text, "ranks 0-29 on a differ from the other 71");
}

}  // namespace
}  // namespace syntra
