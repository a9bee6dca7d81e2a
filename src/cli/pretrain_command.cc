// SPDX-License-Identifier: Apache-2.0
// syntra pretrain
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_config.h"
#include "cli/training.h"
#include "train/pretrain.h"

namespace syntra {
namespace {

// NaN if it was not measured.
double LogPerplexityIn(const NamedValues& values) {
  const auto it = std::ranges::find(values, kLogPerplexityValue, &NamedValue::name);
  return it == values.end() ? NAN : it->value;
}

std::string OutcomeText(const RunOutcome& outcome, const Config& config) {
  if (outcome.was_done) {
    return fmt::format("the run in {} is done: {} of {} steps\n", config.train().directory(),
                       WithThousands(*outcome.step), WithThousands(config.train().steps()));
  }
  std::string text;
  const double first = LogPerplexityIn(outcome.first_values);
  const double last = LogPerplexityIn(outcome.last_values);
  if (!std::isnan(last)) {
    // One evaluation, as in a run that continued shortly before its end, shows no change.
    const std::string before = first == last ? "" : fmt::format("{:.4f} -> ", first);
    text += fmt::format("validation log-perplexity {}{:.4f} ", before, last);
  }
  if (outcome.step) text += fmt::format("after {} steps; ", WithThousands(*outcome.step));
  text += fmt::format("run directory {}\n", config.train().directory());
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
      [options, start](Watchdog&) {
        return LoadedRun{LoadForPretraining(*options, *start), std::nullopt};
      },
      [](const LoadedRun& start, Communicator& sums, Backend& backend, Watchdog& watchdog) {
        const RunOutcome outcome = Pretrain(start.config, sums, backend, watchdog);
        if (sums.rank() == 0) PrintResult(OutcomeText(outcome, start.config));
        return outcome.code;
      });
}

}  // namespace syntra
