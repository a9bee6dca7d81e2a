// SPDX-License-Identifier: Apache-2.0
#include "train/initial.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "checkpoint/tensor_file.h"
#include "convert/formats.h"

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

// The parameters of a model and those of a checkpoint, side by side.
struct Match {
  Match(const TensorSource& initial, Replica& replica) {
    const size_t prefix = std::string_view(kParametersGroup).size();
    std::set<std::string> known;
    for (HostTensor& tensor : replica.HostTensors()) {
      if (!tensor.name.starts_with(kParametersGroup)) continue;
      ++parameters;
      tensor.name = tensor.name.substr(prefix);
      known.insert(tensor.name);
      const auto stored = initial.tensors().find(tensor.name);
      if (stored == initial.tensors().end()) {
        missing.push_back(tensor.name);
      } else if (stored->second != tensor.view.type) {
        others.push_back(fmt::format("{} is {} there, {} here", tensor.name,
                                     ToString(stored->second), ToString(tensor.view.type)));
      } else {
        taken.push_back(std::move(tensor));
      }
    }
    for (const auto& [name, type] : initial.tensors()) {
      if (!known.contains(name)) unused.push_back(name);
    }
  }

  std::vector<std::string> Differences() const {
    std::vector<std::string> lines;
    if (!missing.empty()) lines.push_back(Listed("missing there", missing));
    if (!others.empty()) lines.push_back(Listed("of another type or shape", others));
    if (!unused.empty()) lines.push_back(Listed("not in this model", unused));
    return lines;
  }

  size_t parameters = 0;  // of the model
  std::vector<HostTensor> taken;
  std::vector<std::string> missing, others, unused;
};

}  // namespace

StoredParameters OpenInitial(const Path& path) {
  const ErrorContext context([&] { return "opening checkpoint.initial " + path.string(); });
  const Path place = WithoutCheckpointFile(path);
  if (std::filesystem::is_regular_file(place)) return ParametersOf(OpenTensorFile(place));
  // A checkpoint's configuration and tokenizer are not needed, and need not be sound.
  const ModelFormat* format = FindFormat(place);
  if (!format || format->name == kSyntraFormat.name) return ParametersOf(OpenNewest(place));
  return format->open(place, {});
}

void LoadInitial(StoredParameters& initial, const CheckpointConfig& config, Replica& replica,
                 RunIdentity* identity) {
  const std::string& source = initial.source;
  const Match match(*initial.parameters, replica);
  std::vector<std::string> differences = match.Differences();
  if (match.taken.empty()) {
    Fail(ExitCode::kCheckpoint, "checkpoint.initial {} has no parameter of this model:\n  {}",
         source, Join(differences, "\n  "));
  }
  const std::string& digest = initial.tokenizer_identity;
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
  for (const HostTensor& tensor : match.taken) {
    initial.parameters->Read(tensor.name, tensor.view.As<float>());
  }
  CheckFinite(initial.path, match.taken);
  replica.CommitParameters();
  identity->initial =
      fmt::format("{}: {} of {} parameters", source, match.taken.size(), match.parameters);
  Log().info("starting from the parameters of {}", identity->initial);
  if (!differences.empty()) Log().warn("the rest is initialised:\n  {}", list);
}

}  // namespace syntra
