// SPDX-License-Identifier: Apache-2.0
// syntra finetune
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/results_table.h"
#include "cli/run_config.h"
#include "cli/seeds.h"
#include "cli/training.h"
#include "train/finetune.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

struct FinetuneOptions {
  std::shared_ptr<ConfigOptions> config;
  StartOptions start;
  int seeds = 1;
};

using Notes = std::vector<std::string>;

std::string TableOf(const Json& results, const Notes& other_settings) {
  std::vector<ResultsRow> rows;
  const int seeds = results.value("seeds", 1);
  const std::string name = seeds == 1 ? "this run" : fmt::format("mean of {} seeds", seeds);
  rows.push_back(RowOf(name + (other_settings.empty() ? "" : " (other settings)"), results));
  AddMajorityRow(results, &rows);
  return ResultsTable(rows);
}

std::string ResultText(const Json& results, const Config& config, const Notes& other_settings) {
  std::string text = TableOf(results, other_settings);
  for (const std::string& note : other_settings) text += note + "\n";
  return text + fmt::format("run directory {}\n", config.train().directory());
}

ExitCode FinetuneSeeds(const FinetuneOptions& options, LoadedRun start, const RankContext& rank) {
  const Config& config = start.config;
  const bool is_chief = rank.ranks.rank() == 0;
  std::vector<Json> results;
  Notes other_settings;
  for (int i = 0; i < options.seeds; ++i) {
    const Config one = OfSeed(config, i, options.seeds);
    // The first seed takes what loading has opened.
    const RunOutcome outcome = Finetune(one, rank, std::exchange(start.initial, std::nullopt));
    if (outcome.code != ExitCode::kDone) {
      if (is_chief) PrintResult("stopped on request; the same command continues\n");
      return outcome.code;
    }
    if (!is_chief) continue;
    results.push_back(ReadResults(one.train().directory()));
    const std::string others = OtherSettingsOf(one, outcome);
    if (!others.empty()) other_settings.push_back(others);
  }
  if (!is_chief) return ExitCode::kDone;
  Json all = results.front();
  if (options.seeds > 1) {
    all = SpreadOfRuns(results);
    if (!other_settings.empty()) all["other_settings"] = other_settings;
    ReplaceFileDurably(Path(config.train().directory()) / kResultsFile, JsonText(all, 1) + "\n");
  }
  PrintResult(ResultText(all, config, other_settings));
  return ExitCode::kDone;
}

}  // namespace

Action SetUpFinetune(CLI::App& app) {
  const auto options = std::make_shared<FinetuneOptions>();
  options->config = AddConfigOptions(app);
  AddStartOptions(app, &options->start);
  app.add_option("--seeds", options->seeds,
                 "Number of seeds: train.seed, train.seed + 1, ...; each run has its own "
                 "directory, and the results are the mean and the standard deviation")
      ->check(CLI::Range(1, 1000));
  return TrainingAction(
      "finetune",
      [options](Communicator& ranks, Watchdog& watchdog) {
        options->config->RequireAny();
        if (!NamesTasks(*options->config)) {
          CheckReadable(options->config->Files(), options->config->overrides);
          Fail(ExitCode::kConfig,
               "data.task names no task; add one, e.g. with configs/finetune/sst2.textproto");
        }
        // All of the model is read that it starts from.
        const Watchdog::Phase phase(watchdog, RunPhase::kLoad, 0,
                                    BytesBelow(options->start.initial));
        ConfigOptions given = *options->config;
        if (options->seeds > 1) ShareStart(&given, options->start);
        LoadedRun run = LoadForFinetuning(given, options->start, kForFinetuning, &ranks);
        (options->seeds > 1 ? RequireNoRun : RequireNoSeeds)(run.config.train().directory());
        // A single run looks at that itself, before anything else.
        if (options->seeds > 1) RequireContinuable(run.config, options->seeds);
        return run;
      },
      [options](LoadedRun start, const RankContext& rank) {
        return FinetuneSeeds(*options, std::move(start), rank);
      });
}

}  // namespace syntra
