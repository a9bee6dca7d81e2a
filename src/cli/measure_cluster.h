// SPDX-License-Identifier: Apache-2.0
// The figures of this machine for `plan --nodes`, measured.
#pragma once

#include <functional>

#include "base/file.h"
#include "configs/schema/config.pb.h"
#include "dist/communicator.h"

namespace syntra {

// Collective, on the cores of one host. Measures the speed of the ranks' training steps of this
// model together, the time of their sums over shared memory, and the time to write to `directory`.
// `keep_alive` is called before each step. Throws Error(kConfig) if the ranks cannot share the
// batch, are on several hosts or compute on GPUs.
ClusterConfig MeasureCluster(const Config& config, Communicator& ranks, const Path& directory,
                             const std::function<void()>& keep_alive);

}  // namespace syntra
