// syntra eval
#include <CLI/CLI.hpp>
#include <cmath>

#include "base/json.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "train/evaluate.h"

namespace syntra {
Action SetUpEval(CLI::App& app) {
  const auto options = AddCheckpointOptions(app);
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "Print JSON");
  return [options, as_json] {
    return WithRanks([&](Communicator& ranks) {
      LoadedModel loaded = options->Load(kForEvaluation, &ranks);
      const ValidationData data = OpenValidationData(loaded);
      const EvaluationResult result = *Evaluate(*loaded.replica, data, ranks, loaded.config);
      if (!std::isfinite(result.log_perplexity)) {
        Fail(ExitCode::kCheckpoint,
             "the log-perplexity of {} is not finite; use an older checkpoint",
             loaded.path.string());
      }
      if (ranks.rank() != 0) return ExitCode::kDone;
      if (*as_json) {
        fmt::print("{}\n",
                   JsonText({{"checkpoint", loaded.path.string()},
                             {"step", loaded.step},
                             {"log_perplexity", result.log_perplexity},
                             {"tokens", result.tokens},
                             {"batches", result.batches},
                             {"label_checksum", fmt::format("{:016x}", result.label_checksum)}}));
      } else {
        fmt::print("{}: log-perplexity {:.4f} over {} target tokens (labels {:016x})\n",
                   loaded.path.string(), result.log_perplexity, result.tokens,
                   result.label_checksum);
      }
      return ExitCode::kDone;
    });
  };
}

}  // namespace syntra
