// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "train/hooks.h"

namespace syntra {
namespace {

class ProfileHook : public Hook {
 public:
  explicit ProfileHook(RunContext& run)
      : run_(run),
        first_(run.config.train().profile().first_step()),
        last_(std::min(first_ + run.config.train().profile().steps() - 1,
                       run.config.train().steps())) {}

  // The run ends: however that comes, what was recorded is worth having.
  ~ProfileHook() override { Finish(); }

  bool Start(int64_t step) override {
    if (step >= last_) {
      Log().info("train.profile: step {} is done, nothing is recorded", last_);
    }
    BeginBefore(step + 1);
    return true;
  }

  bool AfterStep(const StepReport& report) override {
    // Work after the last step of a run belongs to that step.
    if (report.step == last_ && !report.last) Finish();
    BeginBefore(report.step + 1);
    return true;
  }
  bool ReadsParametersAfter(const StepReport&) const override { return false; }

 private:
  Path File() const {
    return run_.directory.profile() / fmt::format("rank-{:04}.json", run_.ranks.rank());
  }

  // A run that continues among the steps records the rest of them.
  void BeginBefore(int64_t step) {
    if (run_.trace || step < first_ || step > last_) return;
    double origin = run_.is_chief() ? UnixSeconds() : 0;
    run_.ranks.AllReduceMax(std::span(&origin, 1));
    run_.trace = std::make_shared<Trace>(origin);
    from_ = step;
  }

  // A profile is no reason to end a run.
  void Finish() noexcept {
    if (!run_.trace) return;
    const auto trace = std::exchange(run_.trace, nullptr);
    try {
      if (run_.is_chief()) run_.chief->lock.CheckHeld();
      Write(*trace);
    } catch (const std::exception& error) {
      Log().warn("no profile of steps {} to {}: {}", from_, last_, error.what());
    }
  }

  void Write(const Trace& trace) const {
    const Path folder = run_.directory.profile();
    if (std::filesystem::is_symlink(folder)) {
      Fail(ExitCode::kResources, "{}: it is a symbolic link", folder.string());
    }
    CreateDirectories(folder);
    const int rank = run_.ranks.rank();
    const std::string process =
        fmt::format("rank {} of {}, {}", rank, run_.ranks.size(), HostName());
    ReplaceFileDurably(File(), trace.Text(rank, process, About()));
    if (rank == 0) {
      Log().info("{} has the profile from step {} on, for chrome://tracing and ui.perfetto.dev",
                 File().string(), from_);
    }
  }

  Json About() const {
    Device& device = run_.backend.device();
    return {{"run", run_.identity.run_id},
            {"first_step", from_},
            {"device", device.name()},
            {"times", device.is_host()
                          ? "all by the host's clock"
                          : "phases and ops by events of the GPU, set to the host's clock at the "
                            "start of each step; the rest by the host's clock"}};
  }

  RunContext& run_;
  const int64_t first_, last_;  // steps
  int64_t from_ = 0;            // of them, the first that this process recorded
};

}  // namespace

std::unique_ptr<Hook> MakeProfileHook(RunContext& run) {
  return std::make_unique<ProfileHook>(run);
}

}  // namespace syntra
