// SPDX-License-Identifier: Apache-2.0
// Decides the cores on which each rank of a machine computes. A rank whose GPU is near some of the
// cores takes some of these, other ranks take some of all that they may use. Ranks that may use the
// same cores divide them, so that no two share a core. A rank never gets cores that a launcher or
// `taskset` has withheld from it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "dist/communicator.h"

struct hwloc_topology;

namespace syntra {

// A machine as hwloc sees it. Null where hwloc does not know it.
struct CloseTopology {
  void operator()(hwloc_topology* topology) const;
};
using Topology = std::unique_ptr<hwloc_topology, CloseTopology>;
Topology ThisMachine();

struct RankPlace {
  std::string machine;  // ranks with the same text share its cores
  std::string cpus;     // that the rank may use, as Linux lists them: "0-7,16-23"
  std::string gpu;      // its address on the PCI bus, "0000:3b:00.0"; empty: none, or not known
};
RankPlace ThisPlace(const std::string& gpu);  // of this process

struct RankCores {
  std::string cpus;   // to compute on
  std::string nodes;  // of NUMA, that they are in: "0", "0-1"
  int threads = 1;    // a share of those that other ranks may use, too
  bool are_near_gpu = false;
};
// The cores of one of these ranks. `topology` is that of its machine.
RankCores CoresOf(hwloc_topology& topology, std::span<const RankPlace> places, size_t rank);

// The threads that each of `processes` may have, all of one control group: as many as
// OMP_NUM_THREADS says. Without it, there are no more than the processors that the group may use at
// once, since what takes more is stopped until the next period.
int MostThreads(int processes);

// Collective. Binds this process to its cores and gives it a thread for each of their hardware
// threads, but no more than MostThreads says. Where it cannot be bound, or SYNTRA_BINDING in the
// environment is "none", it stays where it was, with as many threads. `gpu`: as in RankPlace.
void TakeCores(Communicator& ranks, const std::string& gpu);

}  // namespace syntra
