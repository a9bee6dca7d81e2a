// SPDX-License-Identifier: Apache-2.0
// syntra pretrain
#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_config.h"
#include "cli/run_report.h"
#include "cli/training.h"
#include "run/run_history.h"
#include "train/pretrain.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

// "validation log-perplexity 10.3820 at step 0, 5.7410 at step 400; " of the whole run, or nothing
// where it is not recorded. What was trained is safe: a record that cannot be read is no error.
std::string Evaluations(const Path& metrics) {
  try {
    const Curve validation = ReadRunHistory(metrics).validation;
    if (!validation.empty()) {
      return fmt::format("validation log-perplexity {}; ", DescribeCurve(validation));
    }
  } catch (const Error& error) {
    Log().warn("{}", error.what());
  }
  return "";
}

std::string OutcomeText(const RunOutcome& outcome, const Config& config) {
  const TrainConfig& train = config.train();
  const std::string done = outcome.step
                               ? fmt::format("{} of {} steps", WithThousands(*outcome.step),
                                             WithThousands(train.steps()))
                               : "";
  if (outcome.was_done) return fmt::format("the run in {} is done: {}\n", train.directory(), done);
  const Path metrics = RunDirectory{train.directory()}.metrics();
  std::string text = Exists(metrics) ? Evaluations(metrics) : "";  // none: it was stopped before
  if (outcome.step) text += done + "; ";
  text += fmt::format("run directory {}\n", train.directory());
  if (outcome.code == ExitCode::kRequeue) {
    text += "stopped on request; the same command continues\n";
  }
  return text;
}

}  // namespace

Action SetUpPretrain(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto start = std::make_shared<StartOptions>();
  AddInitFrom(app, start.get());
  return TrainingAction(
      "pretrain",
      [options, start](Communicator&, Watchdog&) {
        return LoadedRun{LoadForPretraining(*options, *start), std::nullopt};
      },
      [](const LoadedRun& start, const RankContext& rank) {
        const RunOutcome outcome = Pretrain(start.config, rank);
        if (rank.ranks.rank() == 0) PrintResult(OutcomeText(outcome, start.config));
        return outcome.code;
      });
}

}  // namespace syntra
