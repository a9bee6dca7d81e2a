// SPDX-License-Identifier: Apache-2.0
// A power loss at any moment of a save. Whatever unsynced names and contents are lost, every
// visible checkpoint is complete, no earlier checkpoint is lost, and the next save works.
#include <gmock/gmock.h>

#include "checkpoint/layout.h"
#include "tests/checkpoint/crashing_disk.h"
#include "tests/checkpoint/traced_save.h"

namespace syntra {
namespace {

using State = CrashingDisk::State;

// All combinations of what a save leaves unsynced at a time are fewer.
constexpr size_t kAll = 100000;

class PowerLoss : public TracedSave {
 protected:
  // Records a save of `step` to `root`, and what was there before and is there after it.
  void Record(int64_t step, const Path& root) {
    before_.emplace(root_);
    std::vector<std::string> options = RecordingOptions();
    ASSERT_EQ(Save(step, options, root), 0) << ReadFile(output_);
    after_ = CrashingDisk(root_).Everything();
    bool saving = false;
    for (const RecordedCall& call : ReadRecording(trace_)) {
      if (call.name == "access") saving = call.arguments[0] == "/save-begins";
      if (saving) calls_.push_back(call);
    }
  }

  // The first state of a crash that `violation` objects to, with what it says; empty if there is
  // none. `committed` is passed on: whether the save was durable.
  using Violation = std::function<std::string(const State&, bool committed)>;
  std::string FindViolation(CrashingDisk disk, const std::vector<RecordedCall>& calls,
                            size_t committing, const Violation& violation) {
    std::set<State> seen[2];
    std::string found;
    for (size_t i = 0; i <= calls.size() && found.empty(); ++i) {
      const bool committed = i > committing;
      disk.ForEachCrash(kAll, [&](const State& state) {
        if (!found.empty() || !seen[committed].insert(state).second) return;
        found = violation(state, committed);
        if (!found.empty()) found += fmt::format(" before call {} of {}", i, calls.size());
      });
      if (i < calls.size()) disk.Apply(calls[i]);
    }
    states_ = seen[0].size() + seen[1].size();
    return found;
  }

  // The sync of `root` that follows the rename to the final name.
  size_t CommittingCall(const Path& root) const {
    bool renamed = false;
    for (size_t i = 0; i < calls_.size(); ++i) {
      renamed |= calls_[i].name.starts_with("rename");
      if (renamed && calls_[i].name == "fsync" && calls_[i].arguments[0] == root) return i;
    }
    ADD_FAILURE() << "the save commits nothing";
    return calls_.size();
  }

  // Every checkpoint in sight is whole, and the newest is the old one (-1: none) or the new one,
  // which it must be once committed; then two more saves succeed and tidy up.
  Violation OldOrNew(const Path& root, int64_t old_step, int64_t new_step) const {
    return [=, this](const State& state, bool committed) -> std::string {
      Restore(state, root_);
      try {
        if (Exists(root)) {
          for (const CheckpointRef& each : ListCheckpoints(root)) {
            Checkpoint checkpoint(each.path);
            if (!Sample(each.step).Matches(checkpoint)) return each.path.string() + " is wrong";
          }
        }
        const int64_t newest = NewestStep(root);
        if (newest != new_step && (committed || newest != old_step)) {
          return fmt::format("the newest is {}", newest);
        }
        for (const int64_t next : {new_step, int64_t{30}, int64_t{40}}) Sample(next).Save(root);
        if (DirectoryNames(root) != std::vector<std::string>{StepName(30), StepName(40)}) {
          return "leftovers stay";
        }
      } catch (const std::exception& error) {
        return error.what();
      }
      return "";
    };
  }

  // Nothing is lost as the save is; without any one of its syncs something is.
  void ExpectSafeAndNoSyncToSpare(const Path& root, int64_t old_step, int64_t new_step) {
    Record(new_step, root);
    CrashingDisk replayed = *before_;
    for (const RecordedCall& call : calls_) replayed.Apply(call);
    ASSERT_EQ(replayed.Everything(), after_) << "the replay is not what happened";

    const size_t committing = CommittingCall(root);
    const Violation violation = OldOrNew(root, old_step, new_step);
    EXPECT_EQ(FindViolation(*before_, calls_, committing, violation), "");
    RecordProperty("states", static_cast<int>(states_));
    int syncs = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].name != "fsync") continue;
      ++syncs;
      std::vector<RecordedCall> without = calls_;
      // A call without effect.
      without[i].name = "access";
      EXPECT_NE(FindViolation(*before_, without, committing, violation), "")
          << "nothing is lost without the sync of " << calls_[i].arguments[0];
    }
    EXPECT_GE(syncs, 6);
  }

  std::optional<CrashingDisk> before_;
  State after_;
  std::vector<RecordedCall> calls_;
  size_t states_ = 0;  // that the last FindViolation met
};

TEST_F(PowerLoss, OfANewCheckpoint) {
  Reset();
  ExpectSafeAndNoSyncToSpare(root_, 10, 20);
}

TEST_F(PowerLoss, OfACheckpointInPlaceOfAnother) {
  Reset();
  ExpectSafeAndNoSyncToSpare(root_, 10, 10);
}

TEST_F(PowerLoss, OfTheFirstCheckpoint) {
  CreateDirectories(root_);
  ExpectSafeAndNoSyncToSpare(root_ / "run" / "checkpoints", -1, 20);
}

// Some files are synced twice: by those who write them, and by the one who commits.
TEST_F(PowerLoss, OfACheckpointOfSeveralWriters) {
  writers_ = 2;
  Reset();
  Record(20, root_);
  EXPECT_EQ(FindViolation(*before_, calls_, CommittingCall(root_), OldOrNew(root_, 10, 20)), "");
  EXPECT_GT(states_, 50u);
}

// strace splits a call in the middle of which another thread made one, and aligns the result of the
// rest.
TEST(Recording, JoinsInterruptedCalls) {
  const Path trace = ScratchInMemory("recording") / "interrupted.trace";
  ReplaceFileDurably(trace, R"(7 fsync(6<\x2f\x61> <unfinished ...>
8 write(7<\x2f\x62>, "\x63", 1) = 1
7 <... fsync resumed>)              = 0
8 unlink("\x2f\x62")                = -1 ENOENT (No such file or directory)
)");
  const std::vector<RecordedCall> calls = ReadRecording(trace);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].name, "write");
  EXPECT_EQ(calls[1].name, "fsync");
  EXPECT_EQ(calls[1].arguments, std::vector<std::string>{"/a"});
}

}  // namespace
}  // namespace syntra
