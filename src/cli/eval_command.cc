// SPDX-License-Identifier: Apache-2.0
// syntra eval
#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>

#include "base/json.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "train/log_perplexity.h"

namespace syntra {

Action SetUpEval(CLI::App& app) {
  const auto options = AddCheckpointOptions(app);
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "Print JSON");
  return [options, as_json] {
    return WithRanks("eval", [&](Communicator& ranks, Watchdog& watchdog) {
      LoadedModel loaded = options->LoadOnRanks(kForEvaluation, ranks, watchdog);
      CheckGivesTokens(loaded.config.model());
      const ValidationData data = OpenValidationData(loaded, ranks, watchdog);
      std::optional<Watchdog::Phase> phase;
      const auto keep_alive = [&] {
        phase.emplace(watchdog, RunPhase::kEvaluation, loaded.step);
        return false;
      };
      const LogPerplexity result =
          *MeasureLogPerplexity(*loaded.replica, data, ranks, loaded.config, keep_alive);
      phase.reset();
      if (!std::isfinite(result.value)) {
        Fail(ExitCode::kCheckpoint,
             "the log-perplexity of {} is not finite; use an older checkpoint",
             loaded.path.string());
      }
      if (ranks.rank() != 0) return ExitCode::kDone;
      if (*as_json) {
        fmt::print("{}\n",
                   JsonText({{"checkpoint", loaded.path.string()},
                             {"step", loaded.step},
                             {"log_perplexity", result.value},
                             {"tokens", result.tokens},
                             {"batches", result.batches},
                             {"label_checksum", fmt::format("{:016x}", result.label_checksum)}}));
      } else {
        fmt::print("{}: log-perplexity {:.4f} over {} target tokens (labels {:016x})\n",
                   loaded.path.string(), result.value, result.tokens, result.label_checksum);
      }
      return ExitCode::kDone;
    });
  };
}

}  // namespace syntra
