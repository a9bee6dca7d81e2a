// syntra pretrain
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/backend.h"
#include "cli/commands.h"
#include "cli/communicator.h"
#include "cli/config_options.h"
#include "cli/ranks.h"
#include "train/pretrain.h"

namespace syntra {
namespace {

void Print(const PretrainOutcome& outcome, const Config& config) {
  if (outcome.was_done) {
    fmt::print("the run in {} is done: {} of {} steps\n", config.train().directory(),
               WithThousands(*outcome.step), WithThousands(config.train().steps()));
    return;
  }
  if (outcome.last_log_perplexity) {
    const double first = *outcome.first_log_perplexity, last = *outcome.last_log_perplexity;
    // One evaluation, as in a run that continued shortly before its end, shows no change.
    const std::string before = first == last ? "" : fmt::format("{:.4f} -> ", first);
    fmt::print("validation log-perplexity {}{:.4f} ", before, last);
  }
  if (outcome.step) fmt::print("after {} steps; ", WithThousands(*outcome.step));
  fmt::print("run directory {}\n", config.train().directory());
  if (outcome.code == ExitCode::kRequeue) {
    fmt::print("stopped on request; the same command continues\n");
  }
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
      if (ranks.rank() == 0) Print(outcome, config);
      return outcome.code;
    });
  };
}

}  // namespace syntra
