// syntra pretrain
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/ranks.h"
#include "train/pretrain.h"

namespace syntra {

Action SetUpPretrain(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  return [options] {
    return WithRanks([&](Communicator& ranks) {
      const Config config = options->Load(kForTraining);
      const PretrainOutcome outcome = Pretrain(config, ranks);
      if (ranks.rank() == 0) {
        fmt::print("validation log-perplexity {:.4f} -> {:.4f} after {} steps; run directory {}\n",
                   outcome.first_log_perplexity, outcome.last_log_perplexity,
                   WithThousands(outcome.step), config.train().directory());
        if (outcome.code == ExitCode::kRequeue) {
          fmt::print("stopped on request; the same command continues\n");
        }
      }
      return outcome.code;
    });
  };
}

}  // namespace syntra
