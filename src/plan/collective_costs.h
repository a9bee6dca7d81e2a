// SPDX-License-Identifier: Apache-2.0
// Predicts how long the ranks' collectives take by the alpha-beta model: a message of m bytes over
// a link takes latency + m / bandwidth (Hockney 1994). Closed forms of the algorithms that dist/
// uses: no I/O, nothing is measured. Seconds and bytes throughout.
//
// Sources: rings, recursive doubling and pairwise exchange: Thakur, Rabenseifner and Gropp 2005,
// "Optimization of Collective Communication Operations in MPICH"; two trees that each move half
// of a vector: Sanders, Speck and Traeff 2009, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan".
#pragma once

#include <cstdint>
#include <limits>

#include "dist/chunks.h"

namespace syntra {

struct Link {
  double latency = 0;  // seconds until the first byte is there
  double bandwidth = std::numeric_limits<double>::infinity();  // bytes a second, each way
};

// Nodes with the same number of ranks each.
struct Layout {
  int nodes = 1, ranks_per_node = 1;
  int64_t ranks() const { return int64_t{nodes} * ranks_per_node; }
};

// Recursive doubling of a vector that is so short that only the latency counts (the small numbers
// of a step): ceil(log2(ranks)) messages.
double ShortAllReduceSeconds(const Layout& layout, const Link& inside, const Link& between);

// Collectives of GPUs as NCCL does them. `inside`: from one GPU of a node to another; `between`:
// all network adapters of a node together. What crosses a node's border in a ring or a tree is what
// every rank sends, so the slower of both bandwidths counts.
struct GpuNetwork {
  Link inside, between;
  double start = 0;  // seconds from enqueuing a collective to its first message

  // The faster of a ring, 2 (n - 1) / n bytes, and of two trees over the nodes, 2 bytes.
  double AllReduceSeconds(const Layout& layout, double bytes) const;
  // A ring, (n - 1) / n bytes: of equal shares. An all-gather takes as long.
  double ReduceScatterSeconds(const Layout& layout, double bytes) const;
  // How long a reduction to one rank, or a broadcast from it, keeps each rank busy: all bytes pass
  // through a chain of the ranks. In a sequence of them a rank begins the next as soon as its part
  // of the last is done, if their chains begin at neighbours; so ChainLatency counts once for all.
  double ReduceSeconds(const Layout& layout, double bytes) const;
  // Seconds until the first byte has gone through all ranks of a chain.
  double ChainLatency(const Layout& layout) const;

 private:
  double bandwidth(const Layout& layout) const;
};

// Collectives of exposed vectors in host memory (dist/README.md, "How a vector moves"): the ranks
// of a node read each other's, and nodes exchange pairwise. `inside` is of a node: its latency that
// of a barrier, its bandwidth the bytes that all its ranks together read and write in a second.
// `between`: a message from node to node; all bytes of the node together.
struct HostNetwork {
  Link inside, between;
  double chunk_bytes = kChunkBytes;

  double AllReduceSeconds(const Layout& layout, double bytes) const;
  double ReduceScatterSeconds(const Layout& layout, double bytes) const;
  double AllGatherSeconds(const Layout& layout, double bytes) const;

 private:
  // `ways`: 1 for one half of an all-reduce, 2 for both. `moved`: bytes moved in a node's memory
  // for each byte of the vector.
  double ExchangeSeconds(const Layout& layout, double bytes, int ways, double moved) const;
  // How many pieces each share is cut into: on each way a barrier and a message.
  double Chunks(const Layout& layout, double bytes) const;
};

}  // namespace syntra
