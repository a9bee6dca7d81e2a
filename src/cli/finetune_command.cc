// SPDX-License-Identifier: Apache-2.0
// syntra finetune
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/results_table.h"
#include "cli/run_config.h"
#include "cli/seeds.h"
#include "cli/training.h"
#include "metrics/average.h"
#include "train/finetune.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

struct FinetuneOptions {
  std::shared_ptr<ConfigOptions> config;
  StartOptions start;
  int seeds = 1;
};

Json ResultsIn(const std::string& directory) {
  return ParseJson(ReadWholeFile(Path(directory) / kResultsFile));
}

// Means and standard deviations over the runs of several seeds.
Json SpreadOfRuns(std::span<const Json> runs) {
  Json all = runs.front();
  const auto spread_of = [&](const auto& value_in) {
    std::vector<double> values;
    for (const Json& run : runs) values.push_back(value_in(run));
    return SpreadOf(values);
  };
  Json deviations = Json::object();
  for (auto& [task, values] : all["tasks"].items()) {
    for (auto& [name, value] : values.items()) {
      const auto in = [&task = task, &name = name](const Json& run) {
        return run["tasks"][task][name].template get<double>();
      };
      const syntra::Spread spread = spread_of(in);
      value = spread.mean;
      deviations[task][name] = spread.deviation;
    }
  }
  const syntra::Spread average =
      spread_of([](const Json& run) { return run["average"].template get<double>(); });
  all["average"] = average.mean;
  all["average_deviation"] = average.deviation;
  all["deviations"] = deviations;
  all["seeds"] = runs.size();
  all.erase("best_steps");
  return all;
}

// Null where a task has no majority class.
Json AverageOf(const Json& majority, const Json& tasks) {
  std::vector<NamedValues> all;
  for (const auto& [task, values] : majority.items()) {
    NamedValues& of_task = all.emplace_back();
    for (const auto& [name, value] : values.items()) of_task.push_back({name, value});
  }
  return all.empty() || majority.size() != tasks.size() ? Json() : Json(BenchmarkAverage(all));
}

std::string TableOf(const Json& results) {
  std::vector<ResultsRow> rows;
  const int seeds = results.value("seeds", 1);
  rows.push_back({.name = seeds == 1 ? "this run" : fmt::format("mean of {} seeds", seeds),
                  .tasks = results["tasks"],
                  .average = results["average"],
                  .deviations = results.value("deviations", Json())});
  rows.push_back({.name = "majority class",
                  .tasks = results["majority"],
                  .average = AverageOf(results["majority"], results["tasks"])});
  return ResultsTable(rows);
}

std::string ResultText(const Json& results, const Config& config) {
  return fmt::format("{}run directory {}\n", TableOf(results), config.train().directory());
}

ExitCode FinetuneSeeds(const FinetuneOptions& options, LoadedRun start, Communicator& ranks,
                       Backend& backend, Watchdog& watchdog) {
  const Config& config = start.config;
  std::vector<Json> results;
  for (int i = 0; i < options.seeds; ++i) {
    const Config one = OfSeed(config, i, options.seeds);
    // The first seed takes what loading has opened.
    const RunOutcome outcome =
        Finetune(one, ranks, backend, watchdog, std::exchange(start.initial, std::nullopt));
    if (outcome.code != ExitCode::kDone) {
      if (ranks.rank() == 0) PrintResult("stopped on request; the same command continues\n");
      return outcome.code;
    }
    if (ranks.rank() == 0) results.push_back(ResultsIn(one.train().directory()));
  }
  if (ranks.rank() != 0) return ExitCode::kDone;
  Json all = results.front();
  if (options.seeds > 1) {
    all = SpreadOfRuns(results);
    ReplaceFileDurably(Path(config.train().directory()) / kResultsFile, JsonText(all, 1) + "\n");
  }
  PrintResult(ResultText(all, config));
  return ExitCode::kDone;
}

}  // namespace

Action SetUpFinetune(CLI::App& app) {
  const auto options = std::make_shared<FinetuneOptions>();
  options->config = AddConfigOptions(app);
  app.add_option("--init-from", options->start.initial,
                 "Where the model comes from: a run, a checkpoint or a Hugging Face directory; the "
                 "same as --set checkpoint.initial=DIR")
      ->type_name("DIR");
  app.add_flag(
      "--from-scratch", options->start.from_scratch,
      "Start from initialisation, as a baseline; the configuration gives the model's sizes");
  app.add_option("--seeds", options->seeds,
                 "Runs with as many seeds, from train.seed on, each in a directory of its own; "
                 "results are their mean and standard deviation")
      ->check(CLI::Range(1, 1000));
  return TrainingAction(
      "finetune",
      [options](Watchdog& watchdog) {
        // All of the model is read that it starts from.
        const Watchdog::Phase phase(watchdog, RunPhase::kLoad, 0,
                                    BytesBelow(options->start.initial));
        return LoadForFinetuning(*options->config, options->start);
      },
      [options](LoadedRun start, Communicator& sums, Backend& backend, Watchdog& watchdog) {
        return FinetuneSeeds(*options, std::move(start), sums, backend, watchdog);
      });
}

}  // namespace syntra
