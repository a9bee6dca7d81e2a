// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "decode/distribution.h"
#include "train/hooks.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

class EvaluateHook : public Hook {
 public:
  EvaluateHook(RunContext& run, TrainingState& state, Workload& workload)
      : run_(run),
        state_(state),
        workload_(workload),
        evaluators_(workload.Evaluators(run, state)) {}

  // After the last step, End evaluates.
  bool Start(int64_t step) override {
    const bool trains = step < run_.config.train().steps();
    return !trains || !EvaluatesAt(step, run_.config) || Evaluate(step);
  }

  bool ReadsParametersAfter(const StepReport& report) const override {
    return !report.last && !report.stops && IsDue(report.step, run_.config.evaluation().every());
  }

  bool AfterStep(const StepReport& report) override {
    return !ReadsParametersAfter(report) || Evaluate(report.step);
  }

  bool End(int64_t step) override { return Evaluate(step); }

 private:
  // False if a rank was asked to stop. Nothing is logged then: a run that continues at this step
  // makes the whole evaluation.
  bool Evaluate(int64_t step) {
    if (evaluators_.empty()) return true;
    const TraceSpan span(run_.trace, TraceLane::kTraining, "evaluation", step);
    const auto start = Clock::now();
    NamedValues values;
    std::vector<std::string> summaries;
    for (const auto& evaluator : evaluators_) {
      const std::optional<EvaluationResult> result = EvaluateWatched(*evaluator, step);
      if (!result) return false;
      values.insert(values.end(), result->values.begin(), result->values.end());
      summaries.push_back(result->summary);
    }
    const double seconds = SecondsSince(start);
    if (run_.is_chief()) run_.chief->lock.CheckHeld();
    const NamedValues unsaved = workload_.Evaluated(run_, state_, step);
    values.insert(values.end(), unsaved.begin(), unsaved.end());
    if (run_.is_chief()) Record(step, values, summaries, seconds);
    return true;
  }

  void Record(int64_t step, const NamedValues& values, std::span<const std::string> summaries,
              double seconds) {
    run_.chief->progress->Evaluated(seconds);
    run_.chief->records->WriteEvent("evaluation", step, {{"seconds", seconds}});
    run_.chief->records->Write(step, values);
    for (const std::string& summary : summaries) {
      const bool last = &summary == &summaries.back();
      Log().info("step {}: {}{}", WithThousands(step), summary,
                 last ? fmt::format(" ({:.1f} s)", seconds) : "");
    }
  }

  std::optional<EvaluationResult> EvaluateWatched(Evaluator& evaluator, int64_t step) {
    WatchedBatches batches(run_, step);
    try {
      return evaluator.Evaluate(step, [&] {
        run_.MaybeAskToStop("stop_evaluation", step);
        return batches.Stop();
      });
    } catch (const NotFiniteOutput&) {  // on all ranks
      throw NotFiniteAfter(step, "the probability of an output", run_.directory);
    }
  }

  RunContext& run_;
  TrainingState& state_;
  Workload& workload_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;
};

}  // namespace

Divergence NotFiniteAfter(int64_t step, const std::string& what, const RunDirectory& directory) {
  return {step, fmt::format("{} after step {} is not finite. Lower optimizer.schedule.rate or set "
                            "optimizer.clip_norm, and remove the newest checkpoints in {}, which "
                            "may be as bad",
                            what, step, directory.checkpoints().string())};
}

bool EvaluatesAt(int64_t step, const Config& config) {
  if (step >= config.train().steps()) return true;
  const EvaluationConfig& evaluation = config.evaluation();
  return step == 0 ? evaluation.at_start() : IsDue(step, evaluation.every());
}

std::unique_ptr<Hook> MakeEvaluateHook(RunContext& run, TrainingState& state, Workload& workload) {
  return std::make_unique<EvaluateHook>(run, state, workload);
}

}  // namespace syntra
