// syntra pretrain
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/commands.h"
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
    fmt::print("validation log-perplexity {:.4f} -> {:.4f} ", *outcome.first_log_perplexity,
               *outcome.last_log_perplexity);
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
      const PretrainOutcome outcome = Pretrain(config, ranks);
      if (ranks.rank() == 0) Print(outcome, config);
      return outcome.code;
    });
  };
}

}  // namespace syntra
