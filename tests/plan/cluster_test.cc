// SPDX-License-Identifier: Apache-2.0
// Figures of clusters: units, and one clear error for what is missing.
#include "plan/cluster.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

ClusterConfig Parse(const std::string& text) {
  ClusterConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

const std::string kFigures =
    "name: 'a' gigaflops: 4e5 gigaflops_fp32: 2e4 memory_gigabytes_per_second: 3000 "
    "host_gigabytes_per_second: 50 "
    "storage_gigabytes_per_second: 2 collective_microseconds: 15 memory_gibibytes: 2 "
    "link { name: 'nvlink' latency_microseconds: 2 gigabytes_per_second: 370 } "
    "link { name: 'ethernet' gigabytes_per_second: 10 } inside_node: 'nvlink' ";

std::string ErrorOf(const std::string& text, const std::string& link, const Layout& layout) {
  return syntra::ErrorOf([&] { ClusterOf(Parse(text), TrainConfig::BF16, link, layout); },
                         ExitCode::kConfig);
}

TEST(Clusters, FiguresAreInSecondsAndBytes) {
  const Cluster cluster = ClusterOf(Parse(kFigures), TrainConfig::BF16, "ethernet", {2, 8});
  EXPECT_DOUBLE_EQ(cluster.flops, 4e14);
  EXPECT_DOUBLE_EQ(ClusterOf(Parse(kFigures), TrainConfig::FP32, "", {1, 8}).flops, 2e13);
  EXPECT_DOUBLE_EQ(cluster.memory_bandwidth, 3e12);
  EXPECT_DOUBLE_EQ(cluster.memory, 2147483648.0);
  EXPECT_DOUBLE_EQ(cluster.inside.latency, 2e-6);
  EXPECT_DOUBLE_EQ(cluster.inside.bandwidth, 370e9);
  EXPECT_DOUBLE_EQ(cluster.between.bandwidth, 10e9);
  EXPECT_DOUBLE_EQ(cluster.start, 15e-6);
  EXPECT_EQ(cluster.between_name, "ethernet");
  EXPECT_TRUE(cluster.has_gpus());
}

TEST(Clusters, WhatIsMissingIsNamed) {
  const std::string none = ErrorOf("", "", {2, 8});
  for (const char* field :
       {"cluster.gigaflops", "cluster.memory_gigabytes_per_second",
        "cluster.storage_gigabytes_per_second", "cluster.host_gigabytes_per_second",
        "cluster.inside_node", "configs/clusters/h100_infiniband.textproto"}) {
    EXPECT_NE(none.find(field), std::string::npos) << field << "\n" << none;
  }
  EXPECT_NE(ErrorOf(kFigures, "", {2, 8}).find("--link"), std::string::npos);
  EXPECT_NO_THROW(ClusterOf(Parse(kFigures), TrainConfig::BF16, "", {1, 8}));
  EXPECT_NE(ErrorOf(kFigures + "link { name: 'x' }", "x", {2, 8}).find("gigabytes_per_second"),
            std::string::npos);
}

TEST(Clusters, UnknownLinksAreRefusedWithThoseThereAre) {
  EXPECT_EQ(ErrorOf(kFigures, "ethernt", {2, 8}),
            "--link: the cluster has no link \"ethernt\", but nvlink, ethernet; did you mean "
            "\"ethernet\"?");
  EXPECT_NE(ErrorOf(kFigures + "between_nodes: 'tin'", "", {1, 8}).find("cluster.between_nodes"),
            std::string::npos);
}

}  // namespace
}  // namespace syntra
