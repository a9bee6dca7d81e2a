// SPDX-License-Identifier: Apache-2.0
// A cluster's figures, from its part of a configuration.
#pragma once

#include <string>

#include "configs/schema/config.pb.h"
#include "plan/scaling.h"

namespace syntra {

// `link`: between nodes; empty: the one that the configuration chooses. Throws Error(kConfig) that
// names every figure the layout needs and the configuration lacks, and a link that it does not
// have.
Cluster ClusterOf(const ClusterConfig& config, const std::string& link, const Layout& layout);

}  // namespace syntra
