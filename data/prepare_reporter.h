// SPDX-License-Identifier: Apache-2.0
// How far PrepareCorpus is: for its caller, for people who read the log, and for the processes that
// wait for a shard of this one.
#pragma once

#include "base/clock.h"
#include "data/prepare.h"
#include "data/shard_claim.h"

namespace syntra {

class PrepareReporter {
 public:
  PrepareReporter(const PrepareOptions& options, int64_t shards);

  // Each of these calls on_progress, which may throw.
  void Compared();  // a few MB of a file
  void Made(int64_t documents, int64_t tokens);
  void ShardDone();
  void Waiting(const Path& shard);  // that another process has claimed; called again and again

  // The claim that is touched as the work goes on; null: none.
  void SetClaim(const ShardClaim* claim) { claim_ = claim; }

 private:
  void Report();
  void LogWait() const;

  const PrepareOptions& options_;
  PrepareProgress progress_;
  const ShardClaim* claim_ = nullptr;
  Path awaited_;  // the shard that another process makes; empty: none
  Clock::time_point logged_ = Clock::now(), touched_ = Clock::now();
};

}  // namespace syntra
