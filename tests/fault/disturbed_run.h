// SPDX-License-Identifier: Apache-2.0
// A tiny run with a directory of its own that something happens to, and that must end with the bits
// of a run that nothing happened to, at whatever number of ranks it goes on.
#pragma once

#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/e2e/tiny_run.h"

namespace syntra {

// Something that no fault may lead to.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What is compared, and how long it takes where nothing happens.
struct Undisturbed {
  // Makes a run in `folder`, alone.
  Undisturbed(const TinyFiles& files, const Path& folder);

  std::string metrics, checkpoint;  // MetricsTrace, CheckpointTrace
  double seconds = 0;
};

class DisturbedRun {
 public:
  // Checkpoints follow each other at every third step.
  static constexpr int64_t kSteps = 12, kCheckpointEvery = 3;
  // Half of the runs save beside training. A token shard is made in each; EXACT gives the same bits
  // at any number of ranks.
  static const Arguments kSettings;

  // `folder` is the run's own. All choices follow from `seed`; moments depend on the machine, too.
  DisturbedRun(const TinyFiles& files, const Path& folder, const Undisturbed& undisturbed,
               uint32_t seed);
  // Unmounts what a fault has mounted on base().
  ~DisturbedRun();
  DisturbedRun(const DisturbedRun&) = delete;
  DisturbedRun& operator=(const DisturbedRun&) = delete;

  const Path& folder() const { return folder_; }
  // Below base(), which holds the run alone.
  const Path& directory() const { return directory_; }
  Path base() const { return folder_ / "disk"; }
  Path checkpoints() const { return directory_ / "checkpoints"; }

  // A number in [0, count), which is at least 1.
  int64_t Draw(int64_t count);
  template <typename Choices>
  auto Pick(const Choices& choices) {
    return *(std::begin(choices) + Draw(std::size(choices)));
  }
  // Mostly 1, which starts sooner; otherwise `most`. 1 without mpirun.
  int DrawRanks(int most = 2);

  // Starts the run, or continues it.
  Program Start(const StartOptions& options) const;
  // Returns at a random moment of a run with so many ranks, or when it has ended.
  void WaitForAMoment(const Program& program, int ranks);
  // Kills the run at a random moment after it has two checkpoints. It may have ended by then.
  void KillWithTwoCheckpoints();

  // Notes the exit code, and that it is one of these. Throws Violation.
  void Expect(const Outcome& outcome, const std::vector<int>& codes);
  // That every checkpoint is there that was saved before the last line of metrics was written.
  void ExpectNothingCommittedIsLost() const;
  // The lines of metrics.jsonl could not be written: they are not compared.
  void MetricsMayHaveGaps() { compares_metrics_ = false; }

  // The start that finishes the run must print this.
  void MustSay(const std::string& text) { must_say_ = text; }

  // Continues the run to its end at a random number of ranks, and looks at what is left. Throws
  // Violation.
  void Finish();

  // Of all programs that were disturbed: their exit codes, and how often each came.
  const std::map<int, int>& codes() const { return codes_; }

 private:
  void ExpectNoProcesses() const;
  void ExpectNoLeftovers() const;

  const TinyFiles& files_;
  Path folder_, directory_;
  const Undisturbed& undisturbed_;
  std::mt19937 random_;
  bool saves_beside_training_;
  bool compares_metrics_ = true;
  std::string must_say_;
  std::map<int, int> codes_;
};

}  // namespace syntra
