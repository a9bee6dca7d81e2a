// SPDX-License-Identifier: Apache-2.0
#include "train/initial.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/tensor_file.h"
#include "train/continuation.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

constexpr size_t kMostNamed = 8;

// "missing there (12): a, b, c and 9 more"
std::string Listed(const char* what, const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostNamed);
  const std::string more =
      shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "";
  return fmt::format("{} ({}): {}{}", what, names.size(), Join(std::span(names).first(shown), ", "),
                     more);
}

std::string SourceOf(const Checkpoint& initial) {
  const std::string path = std::filesystem::absolute(initial.path()).lexically_normal().string();
  const CheckpointInfo& info = initial.info();
  if (info.run_id.empty()) return path;
  return fmt::format("{} (step {} of run {})", path, info.step, Printable(info.run_id));
}

// The parameters of a model and those of a checkpoint, side by side.
struct Match {
  Match(const Checkpoint& initial, Replica& replica) {
    const bool grouped = std::ranges::any_of(initial.tensors(), [](const auto& tensor) {
      return tensor.first.starts_with(kParametersGroup);
    });
    const size_t prefix = std::string_view(kParametersGroup).size();
    std::set<std::string> known;
    for (HostTensor& tensor : replica.HostTensors()) {
      if (!tensor.name.starts_with(kParametersGroup)) continue;
      ++parameters;
      const std::string name = tensor.name.substr(prefix);
      if (!grouped) tensor.name = name;
      known.insert(tensor.name);
      const TensorType* stored = initial.Find(tensor.name);
      if (!stored) {
        missing.push_back(name);
      } else if (*stored != tensor.view.type) {
        others.push_back(fmt::format("{} is {} there, {} here", name, ToString(*stored),
                                     ToString(tensor.view.type)));
      } else {
        taken.push_back(std::move(tensor));
      }
    }
    for (const auto& [name, entry] : initial.tensors()) {
      if (grouped && !name.starts_with(kParametersGroup)) continue;  // e.g. optimizer state
      if (!known.contains(name)) unused.push_back(grouped ? name.substr(prefix) : name);
    }
  }

  std::vector<std::string> Differences() const {
    std::vector<std::string> lines;
    if (!missing.empty()) lines.push_back(Listed("missing there", missing));
    if (!others.empty()) lines.push_back(Listed("of another type or shape", others));
    if (!unused.empty()) lines.push_back(Listed("not in this model", unused));
    return lines;
  }

  size_t parameters = 0;          // of the model
  std::vector<HostTensor> taken;  // under their names in the checkpoint
  std::vector<std::string> missing, others, unused;
};

// A state that fits in part is not taken: some parameters would follow averages that others lack.
void TakeOptimizerState(Checkpoint& initial, bool same_model, Replica& replica,
                        RunIdentity* identity) {
  std::vector<HostTensor> state = replica.HostTensors();
  std::erase_if(state,
                [](const HostTensor& tensor) { return tensor.name.starts_with(kParametersGroup); });
  const bool has_all = std::ranges::all_of(state, [&](const HostTensor& tensor) {
    const TensorType* stored = initial.Find(tensor.name);
    return stored && *stored == tensor.view.type;
  });
  if (!same_model || !has_all) {
    Log().warn(
        "the optimizer's state starts at 0: {} has no state of this optimizer for all of "
        "these parameters",
        initial.path().string());
    return;
  }
  ReadTensors(initial, state);
  replica.Commit();
  identity->optimizer_steps_before = OptimizerStepsOf(initial);
  Log().info("the optimizer continues after {} steps",
             WithThousands(identity->optimizer_steps_before));
}

}  // namespace

std::optional<Config> ConfigOfStart(const Config& config) {
  const RunDirectory run{config.train().directory()};
  if (!run.root.empty()) {
    if (const auto newest = NewestSummary(run.checkpoints())) {
      return ConfigOf(newest->path, newest->info);
    }
  }
  const Path path = config.checkpoint().initial();
  if (path.empty()) return std::nullopt;
  const Path place = WithoutCheckpointFile(path);
  if (std::filesystem::is_regular_file(place)) return std::nullopt;
  const Checkpoint initial = OpenNewest(place);
  return ConfigOf(initial.path(), initial.info());
}

std::optional<Checkpoint> InitialOf(const Config& config) {
  const Path path = config.checkpoint().initial();
  const RunDirectory run{config.train().directory()};
  if (path.empty() || !ListCheckpoints(run.checkpoints()).empty()) return std::nullopt;
  const ErrorContext context([&] { return "opening checkpoint.initial " + path.string(); });
  const Path place = WithoutCheckpointFile(path);
  return std::filesystem::is_regular_file(place) ? OpenTensorFile(place) : OpenNewest(place);
}

void LoadInitial(Checkpoint& initial, const CheckpointConfig& config, Replica& replica,
                 RunIdentity* identity) {
  const std::string source = SourceOf(initial);
  const Match match(initial, replica);
  std::vector<std::string> differences = match.Differences();
  if (match.taken.empty()) {
    Fail(ExitCode::kCheckpoint, "checkpoint.initial {} has no parameter of this model:\n  {}",
         source, Join(differences, "\n  "));
  }
  const std::string digest = TokenizerIdentityOf(initial);
  if (!digest.empty() && digest != identity->tokenizer_identity) {
    differences.push_back(
        fmt::format("tokenizer: XXH3-128 {} there, {} here: the same ids mean other "
                    "pieces",
                    Printable(digest), identity->tokenizer_identity));
  }
  const std::string list = Join(differences, "\n  ");
  if (!differences.empty() && config.initial_missing() == CheckpointConfig::FAIL) {
    Fail(ExitCode::kCheckpoint,
         "checkpoint.initial {} and this run do not match:\n  {}\nTo take the {} of {} parameters "
         "that match and initialise the rest, set checkpoint.initial_missing to INITIALIZE",
         source, list, match.taken.size(), match.parameters);
  }
  ReadTensors(initial, match.taken);
  replica.CommitParameters();
  if (config.initial_state() == CheckpointConfig::CONTINUED) {
    TakeOptimizerState(initial, differences.empty(), replica, identity);
  }
  identity->initial =
      fmt::format("{}: {} of {} parameters", source, match.taken.size(), match.parameters);
  Log().info("starting from the parameters of {}", identity->initial);
  if (!differences.empty()) Log().warn("the rest is initialised:\n  {}", list);
}

}  // namespace syntra
