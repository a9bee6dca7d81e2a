// SPDX-License-Identifier: Apache-2.0
#include "plan/collective_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace syntra {
namespace {

int CeilLog2(int64_t value) { return std::bit_width(static_cast<uint64_t>(value - 1)); }

// The fraction of a vector that moves to other ranks: (n - 1) / n.
double ShareOfOthers(int64_t ranks) {
  return static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

}  // namespace

double ShortAllReduceSeconds(const Layout& layout, const Link& inside, const Link& between) {
  return CeilLog2(layout.ranks_per_node) * inside.latency +
         CeilLog2(layout.nodes) * between.latency;
}

double GpuNetwork::bandwidth(const Layout& layout) const {
  if (layout.nodes == 1) return inside.bandwidth;
  if (layout.ranks_per_node == 1) return between.bandwidth;
  return std::min(inside.bandwidth, between.bandwidth);
}

double GpuNetwork::ChainLatency(const Layout& layout) const {
  return layout.nodes * (layout.ranks_per_node - 1) * inside.latency +
         (layout.nodes - 1) * between.latency;
}

double GpuNetwork::AllReduceSeconds(const Layout& layout, double bytes) const {
  if (layout.ranks() == 1) return 0;
  const double rate = bandwidth(layout);
  const double ring = 2 * (ShareOfOthers(layout.ranks()) * bytes / rate + ChainLatency(layout));
  // Up the tree and down again: from rank to rank in a node, and by levels of nodes.
  const double tree = 2 * (bytes / rate + (layout.ranks_per_node - 1) * inside.latency +
                           CeilLog2(layout.nodes) * between.latency);
  return start + std::min(ring, tree);
}

double GpuNetwork::ReduceScatterSeconds(const Layout& layout, double bytes) const {
  if (layout.ranks() == 1) return 0;
  return start + ShareOfOthers(layout.ranks()) * bytes / bandwidth(layout) + ChainLatency(layout);
}

double GpuNetwork::ReduceSeconds(const Layout& layout, double bytes) const {
  if (layout.ranks() == 1) return 0;
  const double hop = layout.nodes > 1 ? std::max(inside.latency, between.latency) : inside.latency;
  // A rank is first in one chain and last in the one before: it waits for two hops.
  return start + bytes / bandwidth(layout) + 2 * hop;
}

double HostNetwork::Chunks(const Layout& layout, double bytes) const {
  if (layout.nodes == 1) return 1;
  const double message = std::max<double>(chunk_bytes / layout.nodes, kSmallestPieceBytes);
  return std::ceil(bytes / static_cast<double>(layout.ranks()) / message);
}

double HostNetwork::ExchangeSeconds(const Layout& layout, double bytes, int ways,
                                    double moved) const {
  if (layout.ranks() == 1) return 0;
  const double chunks = Chunks(layout, bytes);
  double seconds = 0;
  if (layout.ranks_per_node > 1) {
    // The last barrier: nobody reads any more.
    seconds += (ways * chunks + 1) * inside.latency + moved * bytes / inside.bandwidth;
  }
  if (layout.nodes > 1) {
    seconds += ways * (chunks * (layout.nodes - 1) * between.latency +
                       ShareOfOthers(layout.nodes) * bytes / between.bandwidth);
  }
  return seconds;
}

// With L ranks on a node, for each byte of the vector: L reads, and one write of the sum.
double HostNetwork::ReduceScatterSeconds(const Layout& layout, double bytes) const {
  return ExchangeSeconds(layout, bytes, 1, layout.ranks_per_node + 1);
}

// L - 1 copies, each a read and a write.
double HostNetwork::AllGatherSeconds(const Layout& layout, double bytes) const {
  return ExchangeSeconds(layout, bytes, 1, 2 * (layout.ranks_per_node - 1));
}

double HostNetwork::AllReduceSeconds(const Layout& layout, double bytes) const {
  return ExchangeSeconds(layout, bytes, 2, 3 * layout.ranks_per_node - 1);
}

}  // namespace syntra
