// SPDX-License-Identifier: Apache-2.0
// The files and folders of a run directory (train.directory).
#pragma once

#include <string>

#include "base/file.h"
#include "checkpoint/layout.h"
#include "configs/schema/config.pb.h"

namespace syntra {

struct RunDirectory {
  Path root;

  // The run's name: the last part of the directory's path; empty if that is the root.
  std::string name() const {
    return std::filesystem::absolute(root / "").lexically_normal().parent_path().filename();
  }
  Path description() const { return root / "run.json"; }
  // Present where the directory is that of a comparison; its runs then have directories of their
  // own in it.
  Path comparison() const { return root / "comparison.json"; }
  Path comparison_page() const { return root / "comparison.html"; }
  // Whether this is the directory of a single run.
  bool is_run() const { return Exists(description()); }
  // Where the start that several runs have in common is kept (checkpoint.initial_kept_in).
  Path start() const { return root / "start"; }
  Path config() const { return root / "config.textproto"; }
  Path checkpoints() const { return root / kCheckpointsFolder; }
  // Of finetuning: a directory of checkpoints for each task (best_checkpoints.h).
  Path best() const { return root / "best"; }
  // Answers to validation and test splits, and what the benchmarks take as a submission.
  Path predictions() const { return root / "predictions"; }
  Path submission() const { return root / "submission"; }
  Path metrics() const { return root / "metrics.jsonl"; }
  Path events() const { return root / "events.jsonl"; }
  Path samples() const { return root / "samples.jsonl"; }
  Path prometheus() const { return root / "metrics.prom"; }
  Path profile() const { return root / "profile"; }
  Path tensorboard() const { return root / "tensorboard"; }
  Path logs() const { return root / "log"; }
  // Prepared token shards: data.prepared, or inside the run.
  Path Prepared(const DataConfig& data) const {
    return data.prepared().empty() ? root / "prepared" : Path(data.prepared());
  }
};

// The size of all files in the directory and below, or of the file; 0 if there is neither. An
// estimate, since files may come and go meanwhile.
double BytesBelow(const Path& path);

// The id of the run that lives in the directory, or a new one.
std::string RunIdOf(const RunDirectory& directory);

// Writes config.textproto (all fields) and run.json (id, version, host, ranks, command line, and
// `initial`: where the first parameters came from, if from elsewhere). Rank 0 only, under the run's
// lock, and only once the run is known to be able to go on with this configuration.
void DescribeRun(const RunDirectory& directory, const std::string& run_id, const Config& config,
                 int ranks, const std::string& initial);

}  // namespace syntra
