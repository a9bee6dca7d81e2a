// SPDX-License-Identifier: Apache-2.0
// syntra compare: one recipe, several mixers. Each mixer and seed is a run in a directory of its
// own, which continues and is found done as any run.
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/comparison.h"
#include "cli/mixer_list.h"
#include "cli/run_config.h"
#include "cli/seeds.h"
#include "cli/training.h"
#include "config/print.h"
#include "data/example.h"
#include "plan/training_plan.h"
#include "run/common_error.h"
#include "train/agreement.h"
#include "train/describe.h"
#include "train/finetune.h"
#include "train/pretrain.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

struct CompareOptions {
  std::shared_ptr<ConfigOptions> config;
  std::string mixers;
  int seeds = 1;
};

struct ComparedMixer {
  ListedMixer listed;
  Config config;  // of its run; with several seeds, what they have in common
};

// What the mixers have in common, and what each makes of it.
class Recipe {
 public:
  // `read`: what the common options say, unchecked.
  Recipe(const ConfigOptions& common, const Config& read, int seeds, Watchdog& watchdog)
      : common_(common),
        root_(read.train().directory()),
        initial_(read.checkpoint().initial()),
        seeds_(seeds),
        watchdog_(watchdog) {}

  // The configuration of a mixer's run, which learns tasks from scratch if no model is named.
  Config With(const ListedMixer& mixer) const {
    ConfigOptions options = common_;
    std::vector<std::string>& overrides = options.overrides;
    overrides.insert(overrides.end(), mixer.overrides.begin(), mixer.overrides.end());
    const Config read = ReadUnchecked(options.Files(), overrides);
    const std::string& initial = read.checkpoint().initial();
    // Without a root there is an error, which is told when the configuration is loaded.
    if (!root_.empty()) GiveDirectory(mixer.name, /*own_start=*/initial != initial_, &options);
    // All of the model is read.
    const Watchdog::Phase phase(watchdog_, RunPhase::kLoad, 0, BytesBelow(initial));
    return LoadForTraining(options, {.from_scratch = HasTasks(read.data()) && initial.empty()})
        .config;
  }

  // Whether loading fails with this error without the mixer's line, too.
  bool FailsWithout(const ListedMixer& mixer, const Error& error) const {
    try {
      With({mixer.name, {}});
    } catch (const Error& without) {
      return std::string_view(without.what()) == error.what();
    }
    return false;
  }

 private:
  // A start is kept where all runs that begin with it find it.
  void GiveDirectory(const std::string& name, bool own_start, ConfigOptions* options) const {
    if (!own_start) ShareStart(options);
    Config own;
    own.mutable_train()->set_directory((root_ / name).string());
    options->overrides.push_back(MinimalConfigText(own));
    if (own_start && seeds_ > 1) ShareStart(options);
  }

  const ConfigOptions& common_;
  Path root_;
  std::string initial_;
  int seeds_;
  Watchdog& watchdog_;
};

// All share the corpus: what it comes to in tokens does not depend on the mixer.
std::vector<ComparedMixer> ReadMixers(const CompareOptions& options, Watchdog& watchdog) {
  const ConfigOptions& common = *options.config;
  common.RequireAny();
  CheckReadable(common.Files(), common.overrides);
  const Config read = ReadUnchecked(common.Files(), common.overrides);
  const RunDirectory directory{read.train().directory()};
  RequireNoRun(directory.root);
  const Recipe recipe(common, read, options.seeds, watchdog);
  std::vector<ComparedMixer> mixers;
  for (const ListedMixer& listed : ReadMixerList(options.mixers)) {
    try {
      mixers.push_back({listed, recipe.With(listed)});
    } catch (const Error& error) {
      if (recipe.FailsWithout(listed, error)) throw;
      Fail(error.code(), "{}: the mixer {}:\n{}", options.mixers, listed.name, error.what());
    }
    Config& config = mixers.back().config;
    if (!HasTasks(config.data())) {
      config.mutable_data()->set_prepared(directory.Prepared(read.data()).string());
    }
    (options.seeds > 1 ? RequireNoRun : RequireNoSeeds)(config.train().directory());
    RequireContinuable(config, options.seeds);
  }
  return mixers;
}

// Ranks that read different lists would train on a mixture, or wait for each other for ever. The
// configuration that the lists change is compared as for every training command.
void CheckSameMixers(Communicator& ranks, std::span<const ComparedMixer> mixers, int seeds) {
  Facts facts{{"--seeds", std::to_string(seeds)}};
  for (const ComparedMixer& mixer : mixers) {
    facts.emplace_back(mixer.listed.name, Join(mixer.listed.overrides, "\n"));
  }
  CheckAgreement(ranks, facts, ExitCode::kConfig, "mixers",
                 "Start all ranks with the same --mixers and --seeds");
}

class Comparer {
 public:
  Comparer(const RankContext& rank, int seeds) : rank_(rank), seeds_(seeds) {}

  // nullopt if it was asked to stop.
  std::optional<MixerResult> Run(const ComparedMixer& mixer) {
    MixerResult result = Planned(mixer);
    std::vector<Json> results;
    for (int seed = 0; seed < seeds_; ++seed) {
      const Config config = OfSeed(mixer.config, seed, seeds_);
      const std::optional<RunOutcome> outcome = Train(config);
      if (!outcome) {
        ++result.diverged;
      } else if (outcome->code != ExitCode::kDone) {
        return std::nullopt;
      } else if (rank_.ranks.rank() == 0) {
        const RunDirectory run{config.train().directory()};
        result.histories.push_back(ReadRunHistory(run.metrics()));
        if (HasTasks(config.data())) results.push_back(ReadResults(run.root));
        const std::string others = OtherSettingsOf(config, *outcome);
        if (!others.empty()) result.other_settings.push_back(others);
      }
    }
    if (!results.empty()) result.results = seeds_ == 1 ? results.front() : SpreadOfRuns(results);
    return result;
  }

 private:
  // The facts about a mixer that are known before it is trained.
  MixerResult Planned(const ComparedMixer& mixer) {
    const auto plan =
        TrainingPlan::Make(mixer.config, {.ranks = rank_.ranks.size(), .backend = &rank_.backend});
    const int64_t parameters = plan->parameters().element_count();
    return {.name = mixer.listed.name,
            .model = DescribeModel(mixer.config.model(), parameters),
            .parameters = parameters,
            .flops_per_step = plan->flops_per_step(),
            .planned_bytes = plan->memory().total(),
            .histories = {},
            .results = nullptr,
            .other_settings = {}};
  }

  // nullopt if the run diverged and all ranks know it: the other mixers can still be compared.
  std::optional<RunOutcome> Train(const Config& config) {
    try {
      return HasTasks(config.data()) ? Finetune(config, rank_) : Pretrain(config, rank_);
    } catch (const Error& error) {
      const bool all_know = rank_.ranks.size() == 1 || dynamic_cast<const CommonError*>(&error);
      if (error.code() != ExitCode::kDiverged || !all_know) throw;
      if (rank_.ranks.rank() == 0) Log().error("{}: {}", config.train().directory(), error.what());
      return std::nullopt;
    }
  }

  const RankContext& rank_;
  int seeds_;
};

void WriteResults(const Comparison& comparison, const Path& directory) {
  const RunDirectory files{directory};
  ReplaceFileDurably(files.comparison(), JsonText(ComparisonJson(comparison), 1) + "\n");
  ReplaceFileDurably(files.comparison_page(), ComparisonPage(comparison));
  PrintResult(
      fmt::format("{}page {}\n", ComparisonText(comparison), files.comparison_page().string()));
}

ExitCode Compare(const std::vector<ComparedMixer>& mixers, const CompareOptions& options,
                 const RankContext& rank) {
  Communicator& ranks = rank.ranks;
  CheckSameMixers(ranks, mixers, options.seeds);
  Comparison comparison{.ranks = ranks.size(),
                        .seeds = options.seeds,
                        .steps = mixers.front().config.train().steps(),
                        .of_tasks = HasTasks(mixers.front().config.data()),
                        .mixers = {}};
  Comparer comparer(rank, options.seeds);
  for (const ComparedMixer& mixer : mixers) {
    if (ranks.rank() == 0) {
      Log().info("mixer {} of {}: {}", comparison.mixers.size() + 1, mixers.size(),
                 mixer.listed.name);
    }
    std::optional<MixerResult> result = comparer.Run(mixer);
    if (!result) {
      if (ranks.rank() == 0) PrintResult("stopped on request; the same command continues\n");
      return ExitCode::kRequeue;
    }
    comparison.mixers.push_back(std::move(*result));
  }
  if (ranks.rank() == 0) {
    WriteResults(comparison, Path(mixers.front().config.train().directory()).parent_path());
  }
  return ExitCode::kDone;
}

}  // namespace

Action SetUpCompare(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  options->config = AddConfigOptions(app);
  app.add_option(
         "--mixers", options->mixers,
         "File whose lines each give a mixer's name and one change to model, optimizer, data.pack "
         "or checkpoint.initial, as after --set, e.g. random model.mixer.attention.term=[{ random "
         "{} }]; speeds are relative to the first mixer")
      ->required()
      ->type_name("FILE");
  app.add_option("--seeds", options->seeds,
                 "Number of seeds for each mixer: train.seed, train.seed + 1, ...; the table shows "
                 "the mean and the standard deviation")
      ->check(CLI::Range(1, 1000));
  const auto mixers = std::make_shared<std::vector<ComparedMixer>>();
  return TrainingAction(
      "compare",
      [options, mixers](Communicator&, Watchdog& watchdog) {
        *mixers = ReadMixers(*options, watchdog);
        return LoadedRun{mixers->front().config, std::nullopt};
      },
      [options, mixers](const LoadedRun&, const RankContext& rank) {
        return Compare(*mixers, *options, rank);
      });
}

}  // namespace syntra
