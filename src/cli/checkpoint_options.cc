// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/digest.h"
#include "base/failure.h"
#include "base/memory_limits.h"
#include "base/text.h"
#include "base/utf8.h"
#include "checkpoint/read.h"
#include "checkpoint/recover.h"
#include "cli/backend.h"
#include "convert/formats.h"
#include "data/training_data.h"
#include "data/validation_data.h"
#include "dist/communicator.h"
#include "run/watchdog.h"
#include "train/agreement.h"
#include "train/run_directory.h"
#include "train/snapshot.h"
#include "train/task_data.h"
#include "train/threads.h"

namespace syntra {
namespace {

// The run directory that the checkpoint lies in, by its path or behind links in that; empty if it
// lies in none.
Path RunDirectoryOf(const Path& checkpoint) {
  std::error_code code;
  const Path named = std::filesystem::absolute(checkpoint).lexically_normal();
  for (Path place : {named, std::filesystem::canonical(checkpoint, code)}) {
    if (!place.has_filename()) place = place.parent_path();  // it ended with a slash
    const Path holder = place.parent_path();
    if (holder.filename() != RunDirectory{}.checkpoints()) continue;
    // With "link/.." in the path the first one may be another place. One that the run has removed
    // meanwhile is taken.
    if (std::filesystem::equivalent(place, checkpoint, code) || code) return holder.parent_path();
  }
  return {};
}

// A checkpoint may come from anybody, so what it says of places that are written to does not count:
// token shards go to its run directory, or where the command line says.
std::vector<std::string> WithOwnPlaces(const Path& checkpoint,
                                       const std::vector<std::string>& overrides) {
  const std::string run = RunDirectoryOf(checkpoint).string();
  // A configuration holds no other text, so a run in such a directory has no place of its own.
  std::vector<std::string> all{"data.prepared=", "train.directory=" + (IsUtf8(run) ? run : "")};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

// Where the token shards are, or go; empty: nowhere.
Path PreparedOf(const Config& config) {
  const RunDirectory run{config.train().directory()};
  return run.root.empty() ? Path(config.data().prepared()) : run.Prepared(config.data());
}

// A checkpoint can be evaluated even if its run directory is on a full or read-only disk.
PreparedCorpus PrepareValidation(const PrepareOptions& options, const Tokenizer& tokenizer) {
  try {
    return PrepareCorpus(options, tokenizer);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ExitCode::kResources) throw;
    Fail(ExitCode::kResources,
         "{}\nThe token shards of the validation data go there; give --set "
         "data.prepared=DIRECTORY to put them elsewhere",
         error.what());
  }
}

// Whether the parameters of all ranks take at most a quarter of the memory, so that there is room
// for them once more.
bool CanPackWeights(const ParameterStore& parameters, int ranks_on_host) {
  const auto bytes = static_cast<int64_t>(parameters.arena_elements() * sizeof(float));
  return std::ranges::all_of(MemoryLimits(), [&](const MemoryLimit& limit) {
    return 4 * bytes * (limit.shared ? ranks_on_host : 1) <= limit.bytes;
  });
}

}  // namespace

Checkpoint OpenCheckpoint(const Path& path) {
  const ModelFormat* format = FindFormat(path);
  if (format && std::string_view(format->name) != kSyntraFormat.name) {
    Fail(ExitCode::kCheckpoint,
         "{} holds a model of the format {}; make a checkpoint of it first: syntra convert "
         "--input {} --output DIRECTORY --to {}",
         path.string(), format->name, ShellWord(path.string()), kSyntraFormat.name);
  }
  return OpenNewest(path);
}

LoadedModel CheckpointOptions::Load(const ConfigPurpose& purpose, Communicator* ranks) const {
  std::optional<Checkpoint> found;
  if (!ranks || ranks->rank() == 0) found = OpenCheckpoint(checkpoint);
  Checkpoint opened = *(ranks ? OpenOnAllRanks(std::move(found), *ranks) : std::move(found));
  LoadedModel loaded{.path = opened.path(),
                     .step = opened.info().step,
                     .config = ConfigOf(opened, WithOwnPlaces(opened.path(), overrides), purpose),
                     .prepared = {},
                     .tokenizer = {},
                     .backend = nullptr,
                     .replica = nullptr};
  loaded.prepared = PreparedOf(loaded.config);
  if (purpose.tokenizer) loaded.tokenizer.emplace(TokenizerOf(opened, loaded.config));
  const TrainConfig& train = loaded.config.train();
  loaded.backend = ChooseBackend(train.device(), ranks);
  loaded.replica = std::make_unique<EvaluationReplica>(
      std::make_shared<PlannedModel>(loaded.config.model(), ActivationType(train.precision())),
      *loaded.backend);
  LoadParameters(opened, *loaded.replica);
  if (loaded.backend->device().is_host() &&
      CanPackWeights(loaded.replica->parameters(), ranks ? ranks->ranks_on_host() : 1)) {
    loaded.replica->PackWeights();
  }
  return loaded;
}

LoadedModel CheckpointOptions::LoadOnRanks(const ConfigPurpose& purpose, Communicator& ranks,
                                           Watchdog& watchdog) const {
  const Watchdog::Phase phase(watchdog, RunPhase::kLoad, 0, BytesBelow(checkpoint));
  LoadedModel loaded = Load(purpose, &ranks);
  ChooseThreads(loaded.config.train());
  if (ranks.size() == 1) return loaded;
  CheckSameSettings(ranks, loaded.config, loaded.backend->device().is_host());
  CheckAgreement(
      ranks,
      {{"checkpoint, step", std::to_string(loaded.step)},
       {"parameters, digest", fmt::format("{:016x}", loaded.replica->ParameterDigest())}},
      ExitCode::kCheckpoint, "checkpoints", kGiveSameFiles);
  return loaded;
}

void RequireValidation(const DataConfig& data) {
  if (data.validation_size() > 0) return;
  if (HasTasks(data)) {
    Fail(ExitCode::kConfig,
         "the model learned tasks, and there is no data.validation; to see its answers to the "
         "tasks' validation examples: syntra eval --predictions DIRECTORY");
  }
  Fail(ExitCode::kConfig, "no data.validation; give --set data.validation=PATTERN");
}

ValidationData OpenValidationData(const LoadedModel& model, Communicator& ranks,
                                  Watchdog& watchdog) {
  const Watchdog::Phase phase(watchdog, RunPhase::kPrepare);
  const DataConfig& data = model.config.data();
  RequireValidation(data);
  if (model.prepared.empty()) {
    Fail(ExitCode::kConfig,
         "{} lies in no run directory, so there is no place for the token shards of the validation "
         "data; give --set data.prepared=DIRECTORY",
         model.path.string());
  }
  PrepareOptions options = ValidationPreparation(data, model.prepared);
  options.replaces_shards = false;  // the run's own
  options.on_progress = [&, previous = PrepareProgress()](const PrepareProgress& now) mutable {
    if (now != previous) watchdog.Alive();
    previous = now;
  };
  const PreparedCorpus prepared = PrepareValidation(options, *model.tokenizer);
  const RowLayout& layout = ArchitectureOf(model.config.model()).layout();
  ValidationData opened = ValidationData::Open(data, layout, *model.tokenizer, prepared);
  CheckAgreement(ranks, {{"data.validation, digest", ToHex(opened.ContentDigest())}},
                 ExitCode::kData, "data", kGiveSameFiles);
  return opened;
}

std::vector<TaskData> OpenTasks(const LoadedModel& model, Communicator& ranks, Watchdog& watchdog) {
  const Watchdog::Phase phase(watchdog, RunPhase::kPrepare);
  std::vector<TaskData> tasks = ReadValidation(model.config);
  CheckAgreement(ranks, {{"data.task, digest of validation", ToHex(ValidationDigest(tasks))}},
                 ExitCode::kData, "data", kGiveSameFiles);
  return tasks;
}

std::shared_ptr<CheckpointOptions> AddCheckpointOptions(CLI::App& app) {
  auto options = std::make_shared<CheckpointOptions>();
  app.add_option("--checkpoint,checkpoint", options->checkpoint,
                 "Checkpoint, or a directory of checkpoints, of which the newest valid one is used")
      ->required()
      ->type_name("DIR");
  Repeatable(app.add_option("--set", options->overrides,
                            "Set one field of the checkpoint's configuration"))
      ->type_name("FIELD=VALUE");
  return options;
}

}  // namespace syntra
