// SPDX-License-Identifier: Apache-2.0
// How ranks divide the cores of machines that are not there.
#include "cli/rank_cores.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwloc.h>

namespace syntra {
namespace {

Topology Made(const auto& describe) {
  hwloc_topology_t made = nullptr;
  EXPECT_EQ(hwloc_topology_init(&made), 0);
  Topology topology(made);
  hwloc_topology_set_type_filter(made, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  EXPECT_EQ(describe(made), 0);
  EXPECT_EQ(hwloc_topology_load(made), 0);
  return topology;
}

Topology Synthetic(const char* description) {
  return Made([&](hwloc_topology_t t) { return hwloc_topology_set_synthetic(t, description); });
}

// Two packages of two NUMA nodes of eight cores.
Topology TwoPackages() { return Synthetic("package:2 numa:2 core:8 pu:1"); }

std::vector<RankPlace> Places(const std::vector<std::string>& cpus) {
  std::vector<RankPlace> places;
  for (const std::string& list : cpus) places.push_back({"a", list, ""});
  return places;
}
std::vector<RankPlace> Alike(size_t ranks, const std::string& cpus) {
  return Places(std::vector(ranks, cpus));
}

std::vector<std::string> CpusOf(const Topology& topology, const std::vector<RankPlace>& places) {
  std::vector<std::string> cpus;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    cpus.push_back(CoresOf(*topology, places, rank).cpus);
  }
  return cpus;
}

using Lists = std::vector<std::string>;

TEST(RankCores, RanksHaveEqualPartsOfTheCores) {
  const Topology machine = TwoPackages();
  EXPECT_EQ(CpusOf(machine, Alike(1, "0-31")), (Lists{"0-31"}));
  EXPECT_EQ(CpusOf(machine, Alike(2, "0-31")), (Lists{"0-15", "16-31"}));
  EXPECT_EQ(CpusOf(machine, Alike(3, "0-31")), (Lists{"0-9", "10-19", "20-29"}));
  EXPECT_EQ(CpusOf(machine, Alike(4, "0-31")), (Lists{"0-7", "8-15", "16-23", "24-31"}));
  EXPECT_EQ(CpusOf(machine, Alike(8, "0-31")),
            (Lists{"0-3", "4-7", "8-11", "12-15", "16-19", "20-23", "24-27", "28-31"}));
  for (const size_t ranks : {4, 8, 16, 32}) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      const RankCores cores = CoresOf(*machine, Alike(ranks, "0-31"), rank);
      EXPECT_EQ(cores.nodes, std::to_string(4 * rank / ranks)) << "one node";
      EXPECT_EQ(cores.threads, 32 / ranks);
    }
  }
  EXPECT_EQ(CoresOf(*machine, Alike(3, "0-31"), 1).nodes, "1-2");
}

// Two cores to spare: the second of five ranks begins with its node, where its six cores fit.
TEST(RankCores, CoresToSpareKeepRanksInTheirNodes) {
  const Topology machine = TwoPackages();
  EXPECT_EQ(CpusOf(machine, Alike(5, "0-31")), (Lists{"0-5", "8-13", "14-19", "20-25", "26-31"}));
  EXPECT_EQ(CpusOf(machine, Alike(4, "7-15")), (Lists{"8-9", "10-11", "12-13", "14-15"}));
}

TEST(RankCores, HardwareThreadsOfACoreStayTogether) {
  const Topology machine = Synthetic("package:1 core:4 pu:2");
  EXPECT_EQ(CpusOf(machine, Alike(3, "0-7")), (Lists{"0-1", "2-3", "4-5"}));
  EXPECT_EQ(CoresOf(*machine, Alike(3, "0-7"), 0).threads, 2);
  // One of each core was left to them.
  EXPECT_EQ(CpusOf(machine, Alike(2, "0,2,4,6")), (Lists{"0,2", "4,6"}));
}

TEST(RankCores, WhatRanksMayUseIsNeverWidened) {
  const Topology machine = TwoPackages();
  EXPECT_EQ(CpusOf(machine, Alike(2, "4-11")), (Lists{"4-7", "8-11"}));
  EXPECT_EQ(CpusOf(machine, Alike(2, "6")), (Lists{"6", "6"}));
  // By mpirun or Slurm.
  const std::vector<RankPlace> bound = Places({"0-3", "4-7", "16-31"});
  EXPECT_EQ(CpusOf(machine, bound), (Lists{"0-3", "4-7", "16-31"}));
  EXPECT_EQ(CoresOf(*machine, bound, 1).threads, 4);
  // Those that overlap stay as they are.
  const std::vector<RankPlace> crossed = Places({"0-7", "4-11"});
  EXPECT_EQ(CpusOf(machine, crossed), (Lists{"0-7", "4-11"}));
  EXPECT_EQ(CoresOf(*machine, crossed, 0).threads, 6);  // four of its own, and half of four
}

TEST(RankCores, MoreRanksThanCoresShareThem) {
  const RankCores cores = CoresOf(*TwoPackages(), Alike(5, "0-3"), 2);
  EXPECT_EQ(cores.cpus, "0-3");
  EXPECT_EQ(cores.threads, 1);
  // Linux may list more than there are.
  EXPECT_EQ(CoresOf(*TwoPackages(), Alike(40, "0-511"), 2).cpus, "0-31");
}

// Those of which hwloc does not know what they may use are no reason to leave cores unused.
TEST(RankCores, RanksOfOtherMachinesDoNotCount) {
  std::vector<RankPlace> places = Alike(4, "0-31");
  places[1].machine = places[2].machine = "b";
  EXPECT_EQ(CpusOf(TwoPackages(), places), (Lists{"0-15", "0-15", "16-31", "16-31"}));
  places[0].cpus = "";
  EXPECT_EQ(CoresOf(*TwoPackages(), places, 3).cpus, "0-31");
}

// An object of hwloc's XML for hardware threads [first, first + count) of a node.
std::string Object(const std::string& type, int index, int first, int count, int node,
                   const std::string& children = "") {
  static int number = 0;
  const std::string cpus = fmt::format("{:#010x}", ((1u << count) - 1) << first);
  const std::string nodes = fmt::format("{:#010x}", node < 0 ? 3u : 1u << node);
  return fmt::format(
      R"(<object type="{0}" os_index="{1}" cpuset="{2}" complete_cpuset="{2}" nodeset="{3}" )"
      R"(complete_nodeset="{3}" gp_index="{4}"{5}>{6}</object>)",
      type, index, cpus, nodes, ++number,
      type == "Machine" ? fmt::format(R"( allowed_cpuset="{}" allowed_nodeset="{}")", cpus, nodes)
                        : "",
      children);
}

// Two packages of four cores, a NUMA node and two GPUs each, on the buses 1, 2 and 3, 4.
Topology WithGpus() {
  std::string packages;
  for (const int package : {0, 1}) {
    std::string children = Object("NUMANode", package, 4 * package, 4, package);
    for (int cpu = 4 * package; cpu < 4 * package + 4; ++cpu) {
      children += Object("Core", cpu, cpu, 1, package, Object("PU", cpu, cpu, 1, package));
    }
    children += fmt::format(R"(<object type="Bridge" gp_index="{0}" bridge_type="0-1" depth="0" )"
                            R"(bridge_pci="0000:[{1:02x}-{2:02x}]">)",
                            100 + package, 2 * package, 2 * package + 2);
    for (const int bus : {2 * package + 1, 2 * package + 2}) {
      children +=
          fmt::format(R"(<object type="PCIDev" gp_index="{0}" pci_busid="0000:{1:02x}:00.0" )"
                      R"(pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="0.0"/>)",
                      200 + bus, bus);
    }
    packages += Object("Package", package, 4 * package, 4, package, children + "</object>");
  }
  const std::string xml =
      R"(<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd">)"
      R"(<topology version="2.0">)" +
      Object("Machine", 0, 0, 8, -1, packages) + "</topology>";
  return Made([&](hwloc_topology_t t) {
    return hwloc_topology_set_xmlbuffer(t, xml.c_str(), static_cast<int>(xml.size()) + 1);
  });
}

std::vector<RankPlace> WithGpusAt(const std::vector<std::string>& gpus, const std::string& cpus) {
  std::vector<RankPlace> places = Alike(gpus.size(), cpus);
  for (size_t rank = 0; rank < gpus.size(); ++rank) places[rank].gpu = gpus[rank];
  return places;
}

TEST(RankCores, RanksTakeCoresNearTheirGpus) {
  const Topology machine = WithGpus();
  const Lists gpus{"0000:03:00.0", "0000:01:00.0", "0000:02:00.0", "0000:04:00.0"};
  const std::vector<RankPlace> all = WithGpusAt(gpus, "0-7");
  EXPECT_EQ(CpusOf(machine, all), (Lists{"4-5", "0-1", "2-3", "6-7"}));
  EXPECT_TRUE(CoresOf(*machine, all, 0).are_near_gpu);
  EXPECT_EQ(CoresOf(*machine, all, 0).nodes, "1");
  EXPECT_EQ(CpusOf(machine, WithGpusAt({"0000:04:00.0"}, "0-7")), (Lists{"4-7"}));
}

// A GPU of which no place is known may be anywhere: then no rank is bound, and they share all.
TEST(RankCores, ThreadsAreNoMoreThanTheCores) {
  const Topology machine = WithGpus();
  const std::vector<RankPlace> places =
      WithGpusAt({"0000:01:00.0", "0000:0a:00.0", "0000:04:00.0", "0000:0b:00.0"}, "0-7");
  EXPECT_EQ(CpusOf(machine, places), (Lists{"0-7", "0-7", "0-7", "0-7"}));
  for (size_t rank = 0; rank < places.size(); ++rank) {
    EXPECT_EQ(CoresOf(*machine, places, rank).threads, 2);
  }
}

TEST(RankCores, GpusThatAreFarOrNotKnownDoNotMatter) {
  const Topology machine = WithGpus();
  // None of the cores near the second one was left to the ranks.
  const std::vector<RankPlace> far = WithGpusAt({"0000:01:00.0", "0000:04:00.0"}, "0-3");
  EXPECT_EQ(CpusOf(machine, far), (Lists{"0-1", "2-3"}));
  EXPECT_FALSE(CoresOf(*machine, far, 1).are_near_gpu);
  EXPECT_EQ(CpusOf(machine, WithGpusAt({"0000:0a:00.0", "0000:0b:00.0"}, "0-7")),
            (Lists{"0-3", "4-7"}));
}

}  // namespace
}  // namespace syntra
