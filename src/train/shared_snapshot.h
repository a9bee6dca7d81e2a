// SPDX-License-Identifier: Apache-2.0
// Checkpoints of ranks that share the optimizer's state: every rank writes its part of the state,
// and rank 0 also writes the parameters, which all ranks have. Nothing here is collective: the
// caller carries texts between ranks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/shared_save.h"
#include "train/replica.h"
#include "train/run_context.h"
#include "train/snapshot.h"

namespace syntra {

class SharedSnapshot {
 public:
  explicit SharedSnapshot(const RunContext& run) : run_(run) {}

  // On rank 0: makes the files of a checkpoint of this state. Every rank needs the text to write
  // its part.
  std::string Begin(const RunPosition& position, std::span<const HostTensor> state);
  // On every rank, in any thread: writes its part. Rank 0 needs the answer, which says what was
  // written, or what failed.
  std::string WritePart(const std::string& begun, std::span<const TensorRecord> part) const;
  // On rank 0, with the answers of all ranks. Throws as SaveSnapshot does.
  void Commit(const std::vector<std::string>& answers);

  // The answer of a rank that cannot write, for the exception that is being handled.
  static std::string Failed();

 private:
  const RunContext& run_;
  // On rank 0.
  std::optional<CheckpointFrame> frame_;
  std::unique_ptr<SharedSave> save_;
  int64_t step_ = 0;
};

}  // namespace syntra
