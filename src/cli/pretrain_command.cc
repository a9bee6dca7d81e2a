// syntra pretrain
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>

#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/backend.h"
#include "cli/commands.h"
#include "cli/communicator.h"
#include "cli/config_options.h"
#include "cli/ranks.h"
#include "train/pretrain.h"

namespace syntra {
namespace {

std::string Describe(const PretrainOutcome& outcome, const Config& config) {
  if (outcome.was_done) {
    return fmt::format("the run in {} is done: {} of {} steps\n", config.train().directory(),
                       WithThousands(*outcome.step), WithThousands(config.train().steps()));
  }
  std::string text;
  if (outcome.last_log_perplexity) {
    const double first = *outcome.first_log_perplexity, last = *outcome.last_log_perplexity;
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
    return WithRanks([&](Communicator& ranks) {
      const Config config = options->Load(kForTraining);
      const std::shared_ptr<Backend> backend = ChooseBackend(config.train().device(), &ranks);
      const std::shared_ptr<Communicator> sums =
          ChooseCommunicator(config.train(), ranks, backend->device());
      const PretrainOutcome outcome = Pretrain(config, *sums, *backend);
      if (ranks.rank() == 0) Print(Describe(outcome, config));
      return outcome.code;
    });
  };
}

}  // namespace syntra
