// SPDX-License-Identifier: Apache-2.0
// The ranks of a communicator as those that run one program together (program/collectives.h).
#pragma once

#include "dist/communicator.h"
#include "kernels/rank_group.h"

namespace syntra {

class ProgramRanks final : public RankGroup {
 public:
  // It must outlive this.
  explicit ProgramRanks(Communicator& ranks) : ranks_(ranks) {}

  int size() const override { return ranks_.size(); }
  void AllReduceSum(TensorView view) override { ranks_.AllReduceSum(view); }
  // Throws Error(kConfig) if the ranks differ; rank 0's error says which of them do.
  void CheckAlike(const std::vector<std::string>& collectives) override;

 private:
  Communicator& ranks_;
};

}  // namespace syntra
