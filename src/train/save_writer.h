// SPDX-License-Identifier: Apache-2.0
// Writes the checkpoints of a run, one at a time, while it trains or waits. Rank 0 writes all of
// the state; if ranks share it, each rank writes its own part, and rank 0 commits them together.
#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "train/save_tries.h"
#include "train/shared_snapshot.h"
#include "train/state_copy.h"
#include "train/trainer.h"

namespace syntra {

// In the background, a copy of the state is written by a thread of its own while the next steps
// run. In the foreground, the run waits until the checkpoint is there.
enum class SaveMode { kBackground, kForeground, kMustSucceed };

class SaveWriter {
 public:
  SaveWriter(RunContext& run, TrainingState& state)
      : run_(run),
        state_(state),
        is_shared_(state.replica.plan().shards() > 1),
        tries_(run, "checkpoint"),
        shared_(run) {}

  // Collective. Begins the checkpoint of `step`; the one before must be finished. False where rank
  // 0 cannot, on rank 0 at least.
  bool Begin(int64_t step, SaveMode mode);
  // The step of the checkpoint that was begun last.
  int64_t step() const { return step_; }

  // Whether the ranks are writing their parts, or have not committed them; the same on all ranks.
  bool writes_parts() const { return part_.valid(); }
  // Collective. Commits the parts if every rank has written its own.
  void CommitIfWritten();
  // Whether this rank is writing, or has not looked at what became of it.
  bool is_busy() const { return saving_.valid() || part_.valid(); }
  // Whether rank 0 is still writing; on other ranks false.
  bool IsWriting();

  // Waits for the checkpoint that was begun last. Collective if writes_parts().
  void Finish(SaveMode mode = SaveMode::kBackground);
  // Waits for what this rank writes, without the others. Throws its error.
  void FinishAlone();
  // On rank 0: whether the checkpoint that was finished last failed. It is told once.
  bool TakeFailure();
  // As SaveTries.
  const std::string& diverged() const { return tries_.diverged(); }

 private:
  bool BeginWhole(SaveMode mode);
  bool BeginParts(SaveMode mode);
  void BeginCommit(SaveMode mode);
  // The tensors that this rank writes; in the background a copy of them.
  std::vector<TensorRecord> StateToWrite(SaveMode mode);
  // Calls `work` in a thread of its own or, in the foreground, when its result is asked for.
  template <typename Work>
  auto Launch(SaveMode mode, Work work);
  bool Try(SaveMode mode, const std::function<void()>& work) {
    return tries_.Try(step_, mode == SaveMode::kMustSucceed, work);
  }
  RunPosition Position() const;

  RunContext& run_;
  TrainingState& state_;
  const bool is_shared_;  // the state, by the ranks
  int64_t step_ = 0;
  SaveTries tries_;
  StateCopy copy_;
  SharedSnapshot shared_;
  std::future<std::string> part_;  // the result of writing this rank's part
  // On rank 0.
  std::future<void> saving_;  // the whole checkpoint, or its end where all ranks write
  bool failed_ = false;       // the last one; nobody has asked yet
};

}  // namespace syntra
