// SPDX-License-Identifier: Apache-2.0
// A cluster's figures, from its part of a configuration.
#pragma once

#include <string>

#include "configs/schema/config.pb.h"
#include "plan/scaling.h"

namespace syntra {

// With the speed in `precision`. `link`: between nodes; empty: the one that the configuration
// chooses. Throws Error(kConfig) that names every figure that is needed and that the configuration
// lacks, and a link that it does not have.
Cluster ClusterOf(const ClusterConfig& config, TrainConfig::Precision precision,
                  const std::string& link, const Layout& layout);

}  // namespace syntra
