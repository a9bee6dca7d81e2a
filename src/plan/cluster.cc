// SPDX-License-Identifier: Apache-2.0
#include "plan/cluster.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr double kGiga = 1e9, kMicro = 1e-6, kGibi = 0x1p30;

double GigaflopsIn(const ClusterConfig& config, TrainConfig::Precision precision) {
  return precision == TrainConfig::BF16 ? config.gigaflops() : config.gigaflops_fp32();
}

// Checks that the fields that are needed are set.
void CheckFigures(const ClusterConfig& config, TrainConfig::Precision precision,
                  const Layout& layout) {
  std::vector<std::string> missing;
  const auto need = [&](bool there, const char* field) {
    if (!there) missing.push_back(std::string("cluster.") + field);
  };
  need(GigaflopsIn(config, precision) > 0, precision == TrainConfig::BF16
                                               ? "gigaflops"
                                               : "gigaflops_fp32 (or set train.precision=BF16)");
  need(config.memory_gigabytes_per_second() > 0, "memory_gigabytes_per_second");
  need(config.storage_gigabytes_per_second() > 0, "storage_gigabytes_per_second");
  need(config.cores_per_node() > 0 || config.host_gigabytes_per_second() > 0,
       "host_gigabytes_per_second");
  need(layout.ranks_per_node == 1 || !config.inside_node().empty(), "inside_node");
  if (missing.empty()) return;
  Fail(ExitCode::kConfig,
       "no figures of a cluster for this prediction: {} {} not known; give a file that has them, "
       "such as configs/clusters/h100_infiniband.textproto",
       Join(missing, ", "), missing.size() == 1 ? "is" : "are");
}

const LinkConfig& FindLink(const ClusterConfig& config, const std::string& name,
                           const char* chosen_by) {
  std::vector<std::string> names;
  for (const LinkConfig& link : config.link()) {
    if (link.name() == name) return link;
    names.push_back(link.name());
  }
  Fail(ExitCode::kConfig, "{}: the cluster has no link \"{}\", {}{}", chosen_by, Printable(name),
       names.empty() ? "and no other" : "but " + Join(names, ", "), DidYouMean(name, names));
}

Link FiguresOf(const LinkConfig& link) {
  if (link.gigabytes_per_second() == 0) {
    Fail(ExitCode::kConfig, "the cluster's link \"{}\" has no gigabytes_per_second",
         Printable(link.name()));
  }
  return {link.latency_microseconds() * kMicro, link.gigabytes_per_second() * kGiga};
}

}  // namespace

Cluster ClusterOf(const ClusterConfig& config, TrainConfig::Precision precision,
                  const std::string& link, const Layout& layout) {
  CheckFigures(config, precision, layout);
  Cluster cluster{.name = config.name(), .source = config.source()};
  cluster.cores_per_node = config.cores_per_node();
  cluster.flops = GigaflopsIn(config, precision) * kGiga;
  cluster.memory_bandwidth = config.memory_gigabytes_per_second() * kGiga;
  cluster.memory = config.memory_gibibytes() * kGibi;
  cluster.start = config.collective_microseconds() * kMicro;
  cluster.host_bandwidth = config.host_gigabytes_per_second() * kGiga;
  cluster.storage_bandwidth = config.storage_gigabytes_per_second() * kGiga;
  cluster.price = config.price_per_hour();
  if (!config.inside_node().empty()) {
    cluster.inside = FiguresOf(FindLink(config, config.inside_node(), "cluster.inside_node"));
  }
  // A wrong name is a mistake even where one node needs no link.
  cluster.between_name = link.empty() ? config.between_nodes() : link;
  if (!cluster.between_name.empty()) {
    cluster.between = FiguresOf(
        FindLink(config, cluster.between_name, link.empty() ? "cluster.between_nodes" : "--link"));
  } else if (layout.nodes > 1) {
    Fail(ExitCode::kConfig,
         "several nodes need a link between them: choose one with --link or "
         "cluster.between_nodes");
  }
  return cluster;
}

}  // namespace syntra
