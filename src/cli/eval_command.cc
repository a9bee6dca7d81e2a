// syntra eval
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/ranks.h"
#include "data/training_data.h"
#include "train/evaluate.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

ValidationData OpenValidation(const Config& config, const Tokenizer& tokenizer) {
  const Path prepared = RunDirectory{config.train().directory()}.Prepared(config.data());
  PrepareCorpus(ValidationPreparation(config.data(), prepared), tokenizer);
  return ValidationData::Open(config.data(), tokenizer, prepared);
}

}  // namespace

Action SetUpEval(CLI::App& app) {
  const auto options = AddCheckpointOptions(app);
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "Print JSON");
  return [options, as_json] {
    return WithRanks([&](Communicator& ranks) {
      LoadedModel loaded = options->Load(kForEvaluation, &ranks);
      if (loaded.config.data().validation_size() == 0) {
        Fail(ExitCode::kConfig, "no data.validation; give --set data.validation=PATTERN");
      }
      const Tokenizer tokenizer(loaded.config.data().tokenizer(), loaded.config.data().extra_ids());
      const ValidationData data = OpenValidation(loaded.config, tokenizer);
      const EvaluationResult result = *Evaluate(*loaded.replica, data, ranks, loaded.config);
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
