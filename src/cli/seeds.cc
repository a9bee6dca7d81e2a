// SPDX-License-Identifier: Apache-2.0
#include "cli/seeds.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "checkpoint/recover.h"
#include "metrics/average.h"
#include "train/continuation.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

// The number at this place of every run's results; nothing where one of them has none: a test file
// may have come or changed between two runs.
std::optional<Spread> SpreadAt(std::span<const Json> runs, const Json::json_pointer& at) {
  std::vector<double> values;
  for (const Json& run : runs) {
    if (!run.contains(at) || !run.at(at).is_number()) return std::nullopt;
    values.push_back(run.at(at).get<double>());
  }
  return SpreadOf(values);
}

// What decides the results of a run that is done and is not as this configuration says.
std::string OtherResultsOf(const RunDirectory& run, const Config& config) {
  const auto newest = NewestSummary(run.checkpoints());
  return newest ? OtherResults(*newest, config) : "";
}

}  // namespace

Config OfSeed(Config config, int index, int seeds) {
  if (seeds == 1) return config;
  TrainConfig& train = *config.mutable_train();
  train.set_seed(train.seed() + index);
  train.set_directory(
      (Path(train.directory()) / fmt::format("{}{}", kSeedPrefix, train.seed())).string());
  return config;
}

void RequireNoRun(const Path& directory) {
  if (!RunDirectory{directory}.is_run()) return;
  Fail(ExitCode::kConfig,
       "train.directory {} is that of a single run, which several would mix with; set another",
       directory.string());
}

void RequireNoSeeds(const Path& directory) {
  std::error_code code;
  for (std::filesystem::directory_iterator entry(directory, code), end; !code && entry != end;
       entry.increment(code)) {
    const RunDirectory inner{entry->path()};
    if (!inner.name().starts_with(kSeedPrefix) || !inner.is_run()) continue;
    Fail(ExitCode::kConfig,
         "train.directory {} holds the runs of several seeds, with which a single run would mix; "
         "set another, or give --seeds",
         directory.string());
  }
}

void RequireContinuable(const Config& config, int seeds) {
  for (int i = 0; i < seeds; ++i) {
    RunIdentity identity;
    identity.config = OfSeed(config, i, seeds);
    const RunDirectory run{identity.config.train().directory()};
    if (const auto newest = NewestSummary(run.checkpoints())) CheckContinues(*newest, identity);
  }
}

std::string OtherSettingsOf(const Config& config, const RunOutcome& outcome) {
  const RunDirectory run{config.train().directory()};
  const std::string others = outcome.was_done ? OtherResultsOf(run, config) : "";
  if (!others.empty()) {
    return fmt::format(
        "{} was done before with other settings ({}); to train it with these, set another "
        "train.directory",
        run.root.string(), others);
  }
  const std::string rates = OtherRates(ReadRunHistory(run.metrics()), config);
  return rates.empty() ? "" : fmt::format("{} was continued: {}", run.root.string(), rates);
}

Json SpreadOfRuns(std::span<const Json> runs) {
  Json all = runs.front();
  Json deviations = Json::object();
  for (const char* part : {"tasks", "test"}) {
    if (!all.contains(part)) continue;
    Json means = Json::object();
    for (const auto& [task, values] : all[part].items()) {
      for (const auto& [name, value] : values.items()) {
        const auto spread = SpreadAt(runs, Json::json_pointer() / part / task / name);
        if (!spread) continue;
        means[task][name] = spread->mean;
        deviations[task][name] = spread->deviation;
      }
    }
    all[part] = std::move(means);
  }
  const auto average = SpreadAt(runs, Json::json_pointer("/average"));
  all["average"] = average ? Json(average->mean) : Json();
  all["average_deviation"] = average ? Json(average->deviation) : Json();
  all["deviations"] = deviations;
  all["seeds"] = runs.size();
  all.erase("best_steps");
  return all;
}

}  // namespace syntra
