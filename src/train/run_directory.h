// What stands where in a run directory (train.directory).
#pragma once

#include <string>

#include "base/file.h"
#include "configs/schema/config.pb.h"

namespace syntra {

struct RunDirectory {
  Path root;

  Path checkpoints() const { return root / "checkpoints"; }
  Path metrics() const { return root / "metrics.jsonl"; }
  Path events() const { return root / "tensorboard"; }
  Path logs() const { return root / "log"; }
  // Prepared token shards: data.prepared, or inside the run.
  Path Prepared(const DataConfig& data) const {
    return data.prepared().empty() ? root / "prepared" : Path(data.prepared());
  }
};

// Writes config.textproto (all fields) and run.json (id, version, host, ranks, command line). The id of an
// existing run is kept and returned. Rank 0 only, under the run's lock.
std::string DescribeRun(const RunDirectory& directory, const Config& config, int ranks);

}  // namespace syntra
