// SPDX-License-Identifier: Apache-2.0
// syntra pretrain
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>

#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/backend.h"
#include "cli/commands.h"
#include "cli/communicator.h"
#include "cli/config_options.h"
#include "cli/ranks.h"
#include "train/agreement.h"
#include "train/pretrain.h"
#include "train/signals.h"

namespace syntra {
namespace {

// NaN if it was not measured.
double LogPerplexityIn(const NamedValues& values) {
  const auto it = std::ranges::find(values, kLogPerplexityValue, &NamedValue::name);
  return it == values.end() ? NAN : it->value;
}

std::string Describe(const RunOutcome& outcome, const Config& config) {
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

// The run's result is in its directory: a standard output that takes nothing changes no exit code.
void Print(const std::string& text) {
  if (WriteAll(STDOUT_FILENO, text)) return;
  Log().warn("cannot write to standard output: {}", SystemErrorText(errno));
}

}  // namespace

Action SetUpPretrain(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  return [options] {
    // First of all: joining the other ranks takes long enough for a signal to come.
    InstallSignalHandlers();
    return WithRanks("pretrain", [&](Communicator& ranks, Watchdog& watchdog) {
      const Config config = options->Load(kForTraining);
      const std::shared_ptr<Backend> backend = ChooseBackend(config.train().device(), &ranks);
      CheckSameSettings(ranks, config, backend->device().is_host());
      // Ends after the ranks that sum on GPUs have taken leave of each other.
      std::optional<Watchdog::Phase> end;
      const std::shared_ptr<Communicator> sums =
          ChooseCommunicator(config.train(), ranks, backend->device());
      const RunOutcome outcome = Pretrain(config, *sums, *backend, watchdog);
      if (ranks.rank() == 0) Print(Describe(outcome, config));
      end.emplace(watchdog, RunPhase::kEnd);
      return outcome.code;
    });
  };
}

}  // namespace syntra
