// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_cores.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/control_group.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "core/thread.h"

namespace syntra {
namespace {

// A set of hardware threads or of NUMA nodes.
class Set {
 public:
  Set() : bits_(hwloc_bitmap_alloc()) {}
  explicit Set(hwloc_const_bitmap_t bits) : bits_(hwloc_bitmap_dup(bits)) {}
  explicit Set(const std::string& list) : Set() { hwloc_bitmap_list_sscanf(bits_, list.c_str()); }
  Set(const Set& other) : Set(other.bits_) {}
  Set& operator=(const Set& other) {
    hwloc_bitmap_copy(bits_, other.bits_);
    return *this;
  }
  ~Set() { hwloc_bitmap_free(bits_); }

  hwloc_bitmap_t get() const { return bits_; }
  int count() const { return hwloc_bitmap_weight(bits_); }
  bool Has(int cpu) const { return hwloc_bitmap_isset(bits_, static_cast<unsigned>(cpu)) != 0; }
  std::vector<int> elements() const {
    std::vector<int> found;
    for (int i = hwloc_bitmap_first(bits_); i >= 0; i = hwloc_bitmap_next(bits_, i)) {
      found.push_back(i);
    }
    return found;
  }
  bool Meets(const Set& other) const { return hwloc_bitmap_intersects(bits_, other.bits_) != 0; }
  Set And(const Set& other) const {
    Set both;
    hwloc_bitmap_and(both.bits_, bits_, other.bits_);
    return both;
  }
  void Add(const Set& other) { hwloc_bitmap_or(bits_, bits_, other.bits_); }
  std::string List() const {
    char* text = nullptr;
    hwloc_bitmap_list_asprintf(&text, bits_);
    const std::string list = text;
    std::free(text);
    return list;
  }
  friend bool operator==(const Set& a, const Set& b) {
    return hwloc_bitmap_isequal(a.bits_, b.bits_) != 0;
  }

 private:
  hwloc_bitmap_t bits_;
};

struct Core {
  Set cpus;
  int node;  // NUMA
};

// The cores that have a hardware thread in the set; neighbours in the machine follow each other.
std::vector<Core> CoresIn(hwloc_topology& topology, const Set& cpus) {
  // Some virtual machines have no cores, only hardware threads.
  const bool has_cores = hwloc_get_nbobjs_by_type(&topology, HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<Core> cores;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(&topology, type, object))) {
    const Set own = Set(object->cpuset).And(cpus);
    if (own.count() > 0) cores.push_back({own, hwloc_bitmap_first(object->nodeset)});
  }
  return cores;
}

// The part of the cores that rank `rank` of `ranks` gets; all parts are equal. A part does not
// begin in a NUMA node where it would not fit, as long as there are cores to spare. nullopt: there
// are more ranks than cores.
std::optional<Set> PartOf(const std::vector<Core>& cores, size_t ranks, size_t rank) {
  const size_t part = cores.size() / ranks;
  if (part == 0) return std::nullopt;
  size_t spare = cores.size() - ranks * part, begin = 0;
  const auto end_of_node = [&](size_t first) {
    size_t end = first;
    while (end < cores.size() && cores[end].node == cores[first].node) ++end;
    return end;
  };
  for (size_t before = 0;; ++before, begin += part) {
    const size_t next = end_of_node(begin), left = next - begin;
    if (left < part && left <= spare && next < cores.size() && end_of_node(next) - next >= part) {
      begin = next;
      spare -= left;
    }
    if (before == rank) break;
  }
  Set cpus;
  for (size_t i = begin; i < begin + part; ++i) cpus.Add(cores[i].cpus);
  return cpus;
}

// The hardware threads that the rank may use. Linux also lists hardware threads that do not exist.
Set AllowedTo(const RankPlace& place, hwloc_topology& topology) {
  return Set(place.cpus).And(Set(hwloc_topology_get_topology_cpuset(&topology)));
}

// The cpus allowed to the rank that are near its GPU, or all of them.
Set CandidatesOf(const RankPlace& place, hwloc_topology& topology) {
  const Set allowed = AllowedTo(place, topology);
  if (place.gpu.empty()) return allowed;
  const hwloc_obj_t gpu = hwloc_get_pcidev_by_busidstring(&topology, place.gpu.c_str());
  if (!gpu) return allowed;
  const Set near = Set(hwloc_get_non_io_ancestor_obj(&topology, gpu)->cpuset).And(allowed);
  return near.count() > 0 ? near : allowed;
}

// A rank's share of these, each of which it shares with those of `ranks` that may use it, too. It
// is one of them.
int FairThreads(hwloc_topology& topology, const Set& cpus, std::span<const RankPlace> ranks) {
  std::vector<Set> sets;
  for (const RankPlace& rank : ranks) sets.push_back(AllowedTo(rank, topology));
  double share = 0;
  for (const int cpu : cpus.elements()) {
    const auto has = [&](const Set& set) { return set.Has(cpu); };
    share += 1.0 / static_cast<double>(std::ranges::count_if(sets, has));
  }
  constexpr double kRounding = 1e-6;
  return std::max(1, static_cast<int>(share + kRounding));
}

std::string NodesOf(hwloc_topology& topology, const Set& cpus) {
  Set nodes;
  hwloc_cpuset_to_nodeset(&topology, cpus.get(), nodes.get());
  return nodes.List();
}

// The name of the machine that runs this: its kernel's, since containers name hosts as they like.
std::string MachineName() {
  const std::string id(StripSpace(KernelFile("/proc/sys/kernel/random/boot_id")));
  return id.empty() ? HostName() : id;
}

std::vector<RankPlace> PlacesOfAll(Communicator& ranks, const RankPlace& mine) {
  std::vector<RankPlace> places;
  for (const std::string& line :
       AllGatherLines(ranks, fmt::format("{};{};{}", mine.machine, mine.cpus, mine.gpu))) {
    const std::vector<std::string> parts = Split(line, ';');
    places.push_back({parts.at(0), parts.at(1), parts.at(2)});
  }
  return places;
}

bool IsTurnedOff() {
  const char* binding = std::getenv("SYNTRA_BINDING");
  return binding && std::string_view(binding) == "none";
}

void Bind(hwloc_topology& topology, const std::string& cpus) {
  if (hwloc_set_cpubind(&topology, Set(cpus).get(), HWLOC_CPUBIND_PROCESS) == 0) return;
  Log().warn("this rank cannot be bound to cpus {}: {}", cpus, SystemErrorText(errno));
}

}  // namespace

void CloseTopology::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

Topology ThisMachine() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nullptr;
  Topology topology(made);
  // No other I/O objects: to find what CUDA or OpenCL calls devices hwloc would start them.
  hwloc_topology_set_type_filter(made, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  return hwloc_topology_load(made) == 0 ? std::move(topology) : nullptr;
}

RankPlace ThisPlace(const std::string& gpu) { return {MachineName(), AllowedCpus(), gpu}; }

RankCores CoresOf(hwloc_topology& topology, std::span<const RankPlace> places, size_t rank) {
  const Set mine = CandidatesOf(places[rank], topology);
  const Set allowed = AllowedTo(places[rank], topology);
  size_t alike = 0, before = 0;
  bool crosses = false;         // with a rank that may use only some of mine
  std::vector<RankPlace> here;  // the ranks of this machine
  for (size_t other = 0; other < places.size(); ++other) {
    if (places[other].machine != places[rank].machine) continue;
    here.push_back(places[other]);
    const Set theirs = CandidatesOf(places[other], topology);
    alike += theirs == mine;
    before += theirs == mine && other < rank;
    crosses |= theirs.Meets(mine) && !(theirs == mine);
  }
  std::optional<Set> part;
  if (!crosses) part = PartOf(CoresIn(topology, mine), alike, before);
  const Set& cpus = part ? *part : allowed;
  return {.cpus = cpus.List(),
          .nodes = NodesOf(topology, cpus),
          .threads = part ? cpus.count() : FairThreads(topology, cpus, here),
          .are_near_gpu = part && !(mine == allowed)};
}

int MostThreads(int processes) {
  const auto cpus = std::getenv("OMP_NUM_THREADS") ? std::nullopt : ControlGroupCpus();
  return cpus ? std::clamp(static_cast<int>(*cpus / processes), 1, ThreadCount()) : ThreadCount();
}

void TakeCores(Communicator& ranks, const std::string& gpu) {
  int threads = std::max(1, ProcessorCount() / ranks.ranks_on_host());
  // A rank that is alone and has no GPU has all that it was given.
  if (ranks.size() > 1 || !gpu.empty()) {
    const RankPlace mine = ThisPlace(gpu);
    const std::vector<RankPlace> places = PlacesOfAll(ranks, mine);
    if (const Topology topology = ThisMachine(); topology && !mine.cpus.empty()) {
      const RankCores cores = CoresOf(*topology, places, ranks.rank());
      threads = cores.threads;
      if (!IsTurnedOff() && cores.cpus != mine.cpus) Bind(*topology, cores.cpus);
    } else {
      Log().warn("this rank is not bound to cores: the system reports none");
    }
  }
  SetThreadCount(std::min(threads, MostThreads(ranks.ranks_on_host())));
}

}  // namespace syntra
