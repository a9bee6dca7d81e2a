// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/disturbed_run.h"

#include <sys/mount.h>

#include <algorithm>

#include "base/clock.h"
#include "base/host.h"
#include "checkpoint/recover.h"

namespace syntra {
namespace {

constexpr int kOneIn = 4;  // so many starts, one is with several ranks

template <typename... Parts>
[[noreturn]] void Violate(fmt::format_string<Parts...> text, Parts&&... parts) {
  throw Violation(fmt::format(text, std::forward<Parts>(parts)...));
}

// The first line in which two texts differ.
std::string Difference(const std::string& expected, const std::string& found) {
  const auto [a, b] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  const auto line = [](const std::string& text, size_t at) {
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
  };
  return fmt::format("expected: {}\nfound:    {}", line(expected, a - expected.begin()),
                     line(found, b - found.begin()));
}

// The processes whose command line holds `text`.
std::vector<std::string> ProcessesWith(const std::string& text) {
  std::vector<std::string> found;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string command = KernelFile(entry.path() / "cmdline");
    if (command.find(text) != command.npos) found.push_back(entry.path().filename());
  }
  return found;
}

}  // namespace

const Arguments DisturbedRun::kSettings = {fmt::format("train.steps={}", kSteps),
                                           fmt::format("checkpoint.every={}", kCheckpointEvery),
                                           "evaluation.every=6",
                                           "data.prepared=",
                                           "train.device=CPU",
                                           "train.reduction=EXACT",
                                           "train.micro_batch_size=2"};

Undisturbed::Undisturbed(const TinyFiles& files, const Path& folder) {
  const Path directory = folder / "undisturbed";
  const auto start = Clock::now();
  const Outcome outcome = RunProgram(folder, files.Pretrain(directory, DisturbedRun::kSettings));
  seconds = SecondsSince(start);
  if (outcome.code != 0) Violate("undisturbed, it ends with {}:\n{}", outcome.code, outcome.err);
  metrics = MetricsTrace(directory);
  checkpoint = CheckpointTrace(directory, DisturbedRun::kSteps);
}

DisturbedRun::DisturbedRun(const TinyFiles& files, const Path& folder,
                           const Undisturbed& undisturbed, uint32_t seed)
    : files_(files),
      folder_(folder),
      directory_(folder / "disk/runs/tiny"),
      undisturbed_(undisturbed),
      random_(seed),
      saves_beside_training_(Draw(2) == 0) {
  CreateDirectories(base());
}

DisturbedRun::~DisturbedRun() { umount2(base().c_str(), MNT_DETACH); }

int64_t DisturbedRun::Draw(int64_t count) { return static_cast<int64_t>(random_() % count); }

int DisturbedRun::DrawRanks(int most) {
  return Draw(kOneIn) > 0 || MpirunPath().empty() ? 1 : most;
}

Program DisturbedRun::Start(const StartOptions& options) const {
  Arguments settings = kSettings;
  settings.push_back(fmt::format("checkpoint.asynchronous={}", saves_beside_training_));
  return Program(folder_, files_.Pretrain(directory_, settings), options);
}

// mpirun starts late and ends late.
void DisturbedRun::WaitForAMoment(const Program& program, int ranks) {
  const double longest = undisturbed_.seconds * (ranks > 1 ? 3 : 1);
  const double end = MonotonicSeconds() + longest * static_cast<double>(Draw(1000)) / 1000;
  while (MonotonicSeconds() < end && program.running()) SleepSeconds(0.001);
}

void DisturbedRun::KillWithTwoCheckpoints() {
  Program program = Start({});
  if (!WaitUntil(
          [&] { return NewestStep(directory_) >= kCheckpointEvery || !program.running(); })) {
    Violate("there is no second checkpoint");
  }
  SleepSeconds(undisturbed_.seconds / 4 * static_cast<double>(Draw(1000)) / 1000);
  program.Kill();
}

void DisturbedRun::Expect(const Outcome& outcome, const std::vector<int>& codes) {
  ++codes_[outcome.code];
  const bool expected = std::ranges::find(codes, outcome.code) != codes.end();
  if (expected && !outcome.Says("a bug in this program")) return;
  Violate("ended with {} instead of {}:\n{}", outcome.code, fmt::join(codes, ", "), outcome.err);
}

// The line of a step is written before the step is saved. A save beside training has ended when the
// next one begins.
void DisturbedRun::ExpectNothingCommittedIsLost() const {
  const int64_t logged = LastLoggedStep(directory_);
  if (logged < 1) return;
  const int64_t begun = (logged - 1) / kCheckpointEvery * kCheckpointEvery;
  const int64_t committed = saves_beside_training_ ? begun - kCheckpointEvery : begun;
  const auto found = FindNewestValid(checkpoints(), Recovery::kReadOnly);
  const int64_t newest = found ? found->info().step : -1;
  if (newest < committed) {
    Violate("step {} was logged, and the newest checkpoint is that of step {}", logged, newest);
  }
}

void DisturbedRun::ExpectNoProcesses() const {
  const std::string mark = directory_.string();
  if (WaitUntil([&] { return ProcessesWith(mark).empty(); })) return;
  Violate("processes {} live on", fmt::join(ProcessesWith(mark), ", "));
}

void DisturbedRun::ExpectNoLeftovers() const {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    const std::string name = entry.path().filename();
    if (name.find(".tmp-") != name.npos || name.starts_with(kTrashPrefix) ||
        name.starts_with(kReplacedPrefix)) {
      Violate("{} is left", entry.path().string());
    }
  }
}

void DisturbedRun::Finish() {
  const Outcome outcome = Start({.ranks = DrawRanks(Draw(2) == 0 ? 2 : 4)}).Wait();
  if (outcome.code != 0) {
    Violate("the run did not go on; it ended with {}:\n{}", outcome.code, outcome.err);
  }
  if (!outcome.Says(must_say_)) Violate("it did not say \"{}\":\n{}", must_say_, outcome.err);
  if (const std::string found = CheckpointTrace(directory_, kSteps);
      found != undisturbed_.checkpoint) {
    Violate("other bits in the last checkpoint\n{}", Difference(undisturbed_.checkpoint, found));
  }
  if (const std::string found = MetricsTrace(directory_);
      compares_metrics_ && found != undisturbed_.metrics) {
    Violate("other metrics\n{}", Difference(undisturbed_.metrics, found));
  }
  ExpectNoLeftovers();
  ExpectNoProcesses();
}

}  // namespace syntra
