// SPDX-License-Identifier: Apache-2.0
#include "train/initial.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/file_lock.h"
#include "base/json.h"
#include "base/lock_holder.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/finite.h"
#include "checkpoint/layout.h"
#include "checkpoint/read.h"
#include "checkpoint/recover.h"
#include "checkpoint/tensor_file.h"
#include "checkpoint/verify.h"
#include "config/print.h"
#include "convert/formats.h"
#include "train/best_checkpoints.h"
#include "train/continuation.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

constexpr size_t kMostNamed = 8;

// "missing there (12): a, b, c and 9 more"
std::string Listed(const char* what, const std::vector<std::string>& names) {
  return fmt::format("{} ({}): {}", what, names.size(), JoinFirst(names, kMostNamed));
}

// The parameters of a model and those of a checkpoint, side by side.
struct Match {
  Match(const TensorSource& initial, const ParameterStore& model) : parameters(model.all().size()) {
    for (const Parameter& parameter : model.all()) {
      const TensorType type{DType::kF32, parameter.shape};
      const auto stored = initial.tensors().find(parameter.name);
      if (stored == initial.tensors().end()) {
        missing.push_back(parameter.name);
      } else if (stored->second != type) {
        others.push_back(fmt::format("{} is {} there, {} here", parameter.name,
                                     ToString(stored->second), ToString(type)));
      } else {
        taken.insert(parameter.name);
      }
    }
    for (const auto& [name, type] : initial.tensors()) {
      if (!model.Find(name)) unused.push_back(name);
    }
  }

  std::vector<std::string> Differences() const {
    std::vector<std::string> lines;
    if (!missing.empty()) lines.push_back(Listed("missing there", missing));
    if (!others.empty()) lines.push_back(Listed("of another type or shape", others));
    if (!unused.empty()) lines.push_back(Listed("not in this model", unused));
    return lines;
  }

  size_t parameters;  // of the model
  std::set<std::string> taken;
  std::vector<std::string> missing, others, unused;
};

// Reads these tensors, under these names. Throws Error(kCheckpoint) if a value is not finite.
void ReadAll(TensorSource& source, const Path& path, std::span<const HostTensor> tensors) {
  for (const HostTensor& tensor : tensors) {
    tensor.Fill([&](TensorView whole) { source.Read(tensor.name, whole.As<float>()); });
  }
  CheckFinite(path, RecordsOf(tensors));
}

// A state that fits in part is not taken: some parameters would follow averages that others lack.
void TakeOptimizerState(StoredParameters& initial, const InitialMatch& match, Replica& replica,
                        RunIdentity* identity) {
  std::vector<HostTensor> state = replica.HostTensors();
  std::erase_if(state,
                [](const HostTensor& tensor) { return tensor.name.starts_with(kParametersGroup); });
  const auto is_there = [&](const HostTensor& tensor) {
    const auto& stored = initial.optimizer->tensors();
    const auto it = stored.find(tensor.name);
    return it != stored.end() && it->second == tensor.type;
  };
  std::string why;
  if (!match.differences.empty()) {
    why = fmt::format("does not match this run:\n  {}", match.differences);
  } else if (!initial.optimizer) {
    why = "has none";
  } else if (!std::ranges::all_of(state, is_there)) {
    why = "has none of this optimizer for all parameters";
  }
  if (!why.empty()) {
    Log().warn("the optimizer's state starts at 0: {} {}", initial.path.string(), why);
    return;
  }
  ReadAll(*initial.optimizer, initial.path, state);
  replica.Commit();
  identity->optimizer_steps_before = initial.optimizer_steps;
  Log().info("the optimizer continues after {}", Counted(identity->optimizer_steps_before, "step"));
}

}  // namespace

// A checkpoint is not opened as a format: its configuration and tokenizer need not be sound for its
// parameters to be used.
std::optional<StoredModel> OpenForeign(const Path& path, const Path& tokenizer) {
  if (!IsDirectory(path)) return std::nullopt;
  const ModelFormat* format = FindFormat(path);
  if (!format || std::string_view(format->name) == kSyntraFormat.name) return std::nullopt;
  return format->open(path, Exists(path / format->tokenizer_file) ? Path() : tokenizer);
}

namespace {

InitialModel FromForeign(StoredModel model) {
  const std::string config = MinimalConfigText(model.config);
  std::string tokenizer = std::move(model.tokenizer);
  return {std::move(model), config, std::move(tokenizer)};
}

InitialModel FromCheckpoint(Checkpoint checkpoint) {
  const std::string text = AttributeOrNone(checkpoint.info(), kConfigAttribute);
  std::optional<std::string> tokenizer = checkpoint.ReadFile(kTokenizerFile);
  return {ParametersOf(std::move(checkpoint)), text, std::move(tokenizer)};
}

constexpr int64_t kMostDescriptionBytes = 1 << 20;
constexpr const char* kInitialField = "initial";

// Beside what is kept: the checkpoint.initial that named it.
Path DescriptionIn(const Path& kept_in) { return kept_in / "start.json"; }

// Where a checkpoint is kept that these settings name; empty: nowhere yet.
Path KeptInitial(const CheckpointConfig& config) {
  const Path directory = config.initial_kept_in();
  if (directory.empty() || ListCheckpoints(directory).empty()) return {};
  const auto text = ReadOwnFile(DescriptionIn(directory), kMostDescriptionBytes);
  const Json json = text ? TryParseJson(*text) : Json();
  const Json named = json.is_object() ? json.value(kInitialField, Json()) : Json();
  if (named.is_string() && IsSamePlace(named.get<std::string>(), config.initial())) {
    return directory;
  }
  Fail(ExitCode::kConfig,
       "{} keeps the start of other runs, {}, but checkpoint.initial names {}; set another "
       "checkpoint.initial_kept_in or, if no run needs that start any more, remove {}",
       directory.string(),
       named.is_string() ? named.get<std::string>() : "which its start.json does not say",
       config.initial(), directory.string());
}

// Another start, in place of one that is damaged, is for people to choose.
InitialModel OpenKept(const Path& directory) {
  try {
    return FromCheckpoint(OpenNewestIn(directory));
  } catch (const Error& error) {
    if (error.code() != ExitCode::kCheckpoint) throw;
    Fail(ExitCode::kCheckpoint,
         "{}\nIt is the start that several runs have in common. If it is lost, remove {}, and runs "
         "that begin take what checkpoint.initial names then",
         error.what(), directory.string());
  }
}

// The model or the file of tensors that checkpoint.initial names, at this path.
InitialModel OpenInitial(const Path& path, const Config& config) {
  const ErrorContext context([&] { return "opening checkpoint.initial " + path.string(); });
  const Path place = WithoutCheckpointFile(path);
  if (std::filesystem::is_regular_file(place)) {
    return {ParametersOf(OpenTensorFile(place)), "", std::nullopt};
  }
  if (auto foreign = OpenForeign(place, config.data().tokenizer())) {
    return FromForeign(std::move(*foreign));
  }
  return FromCheckpoint(OpenNewest(place));
}

// Of several processes one is first. The lock ends with its process.
FileLock WaitForLock(const Path& path) {
  std::optional<FileLock> lock = FileLock::Try(path);
  if (!lock) Log().info("waiting for {}, which keeps the start of several runs", HolderIn(path));
  while (!lock) lock = FileLock::TryFor(path, std::chrono::seconds(1));
  NameHolder(*lock);
  return *std::move(lock);
}

// Where the run's own checkpoints are; empty if it has no directory yet.
Path CheckpointsOf(const Config& config) {
  const RunDirectory run{config.train().directory()};
  return run.root.empty() ? Path() : run.checkpoints();
}

}  // namespace

std::optional<InitialModel> InitialOf(const Config& config) {
  const Path path = config.checkpoint().initial(), own = CheckpointsOf(config);
  if (path.empty() || (!own.empty() && !ListCheckpoints(own).empty())) return std::nullopt;
  if (const Path kept = KeptInitial(config.checkpoint()); !kept.empty()) return OpenKept(kept);
  return OpenInitial(path, config);
}

std::optional<InitialModel> KeepInitial(std::optional<InitialModel> opened, const Config& config) {
  const CheckpointConfig& checkpoint = config.checkpoint();
  const Path directory = checkpoint.initial_kept_in();
  // Models of other formats do not change.
  if (!opened || directory.empty() || CheckpointsAt(checkpoint.initial()).empty()) return opened;
  CreateDirectoriesDurably(directory);
  FileLock lock = WaitForLock(directory / "LOCK");
  while (KeptInitial(checkpoint).empty()) {
    const Path from = opened->path;
    try {
      const Json description{{kInitialField, checkpoint.initial()}};
      ReplaceFileDurably(DescriptionIn(directory), JsonText(description) + "\n");
      KeepCheckpoint(from, directory / StepName(ReadManifest(from).info.step));
      Log().info("{} is kept in {} for the runs that start from it later", opened->source,
                 directory.string());
    } catch (const Error&) {
      if (Exists(from)) throw;
      opened = InitialOf(config);  // its run has just replaced it by a newer one
    }
  }
  ForgetHolder(lock);
  return opened->path.parent_path() == directory ? std::move(opened) : InitialOf(config);
}

double InitialBytes(const CheckpointConfig& config) {
  return BytesBelow(config.initial()) + BytesBelow(config.initial_kept_in());
}

std::optional<InitialModel> InitialOnAllRanks(std::optional<InitialModel> opened,
                                              const Config& config, Communicator& ranks) {
  std::string path;
  if (opened) path = std::filesystem::absolute(opened->path).string();
  BroadcastText(ranks, &path);
  const bool is_same = opened && std::filesystem::absolute(opened->path) == path;
  if (ranks.rank() == 0 || is_same || path.empty()) return opened;
  return OpenInitial(path, config);
}

std::optional<Config> ConfigOfStart(const Config& config,
                                    const std::optional<InitialModel>& initial) {
  if (const Path own = CheckpointsOf(config); !own.empty()) {
    if (const auto newest = NewestSummary(own)) return ConfigOf(newest->path, newest->info);
  }
  if (!initial || initial->config.empty()) return std::nullopt;
  return ParseConfig(initial->path.string(), initial->config, {}, kForModel);
}

InitialMatch MatchInitial(const StoredParameters& initial, const CheckpointConfig& config,
                          const ParameterStore& model, const std::string& tokenizer_identity) {
  const Match match(*initial.parameters, model);
  std::vector<std::string> differences = match.Differences();
  if (match.taken.empty()) {
    Fail(ExitCode::kCheckpoint, "checkpoint.initial {} has no parameter of this model:\n  {}",
         initial.source, Join(differences, "\n  "));
  }
  std::string advice;
  if (!differences.empty()) {
    advice = fmt::format(
        "\nTo take the {} of {} parameters that match and initialise the rest, set "
        "checkpoint.initial_missing to INITIALIZE",
        match.taken.size(), match.parameters);
  }
  const std::string& identity = initial.tokenizer_identity;
  if (!identity.empty() && identity != tokenizer_identity) {
    differences.push_back(
        fmt::format("tokenizer: XXH3-128 {} there, {} here: the same ids mean other pieces",
                    Printable(identity), tokenizer_identity));
    advice += "\nTo go on with the tokenizer of the checkpoint, leave data.tokenizer out";
  }
  const std::string list = Join(differences, "\n  ");
  if (!differences.empty() && config.initial_missing() == CheckpointConfig::FAIL) {
    Fail(ExitCode::kCheckpoint, "checkpoint.initial {} and this run do not match:\n  {}{}",
         initial.source, list, advice);
  }
  return {
      match.taken,
      fmt::format("{}: {} of {} parameters", initial.source, match.taken.size(), match.parameters),
      list};
}

void LoadInitial(StoredParameters& initial, const CheckpointConfig& config, Replica& replica,
                 RunIdentity* identity) {
  const InitialMatch match =
      MatchInitial(initial, config, replica.plan().parameters(), identity->tokenizer_identity);
  std::vector<HostTensor> tensors = replica.ParameterTensors();
  for (HostTensor& tensor : tensors) {
    tensor.name = tensor.name.substr(std::string_view(kParametersGroup).size());
  }
  std::erase_if(tensors,
                [&](const HostTensor& tensor) { return !match.taken.contains(tensor.name); });
  ReadAll(*initial.parameters, initial.path, tensors);
  replica.CommitParameters();
  if (config.initial_state() == CheckpointConfig::CONTINUED) {
    TakeOptimizerState(initial, match, replica, identity);
  }
  identity->initial = match.summary;
  Log().info("starting from the parameters of {}", match.summary);
}

}  // namespace syntra
