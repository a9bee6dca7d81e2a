// SPDX-License-Identifier: Apache-2.0
// The checks of the corpora that a run learns from, and of the token shards that are made of them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "data/prepare.h"
#include "data/prepared_state.h"
#include "data/tokenizer.h"
#include "train/continuation.h"
#include "train/disk_needs.h"
#include "train/findings.h"
#include "train/run_directory.h"

namespace syntra {

class CorpusChecks {
 public:
  // The configuration must outlive this.
  CorpusChecks(const Config& config, const RunDirectory& directory);

  // Each throws an Error or returns what it found. Without a tokenizer only the files are counted.
  std::string CheckTraining(const std::optional<Tokenizer>& tokenizer);
  std::string CheckValidation(const std::optional<Tokenizer>& tokenizer);
  CheckResult CheckHeldOut() const;
  CheckResult CheckFirst() const;
  // The corpora must have been checked with a tokenizer. Shards of a directory that the user named
  // are made again if they cannot be used. A warning says so, since another run may be waiting for
  // those that are there.
  CheckResult CheckShards() const;
  // Where the index beside the shards is that of the checkpoint's run, the corpus must be the one
  // it lists: otherwise files would be tokenized, only to be refused.
  void CheckIsThatOf(const CheckpointSummary& checkpoint) const;

  // The digest of the shards of the training data, if all of them are there; else "".
  std::string ShardsDigest() const;
  // For the shards. The corpora must have been checked with a tokenizer.
  std::vector<DiskNeed> DiskNeeds() const;

 private:
  std::string CheckSplit(size_t split, const std::optional<Tokenizer>& tokenizer);

  const Config& config_;
  const Path prepared_;
  const std::vector<PrepareOptions> splits_;  // training and, if there is any, validation data
  std::array<std::optional<PreparedState>, 2> states_;
};

}  // namespace syntra
