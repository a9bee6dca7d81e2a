#include "train/snapshot.h"

#include <map>

#include "base/text.h"
#include "checkpoint/finite.h"
#include "checkpoint/layout.h"
#include "checkpoint/recover.h"
#include "config/print.h"

namespace syntra {
namespace {

constexpr const char* kConfig = "config";
constexpr const char* kTokenizer = "tokenizer_digest";
constexpr const char* kData = "data_digest";
constexpr const char* kSkipped = "skipped_steps";
constexpr const char* kInitial = "initial";

const std::string& Attribute(const Checkpoint& checkpoint, const char* name) {
  const auto it = checkpoint.info().attributes.find(name);
  if (it == checkpoint.info().attributes.end()) {
    Fail(ExitCode::kCheckpoint, "{} has no attribute {}", checkpoint.path().string(), name);
  }
  return it->second;
}

std::string AttributeOrNone(const Checkpoint& checkpoint, const char* name) {
  const auto it = checkpoint.info().attributes.find(name);
  return it == checkpoint.info().attributes.end() ? "" : it->second;
}

// The part of a configuration that decides what is computed; the rest may change between starts.
Config WhatDecidesTheNumbers(const Config& config) {
  Config kept;
  *kept.mutable_model() = config.model();
  *kept.mutable_optimizer() = config.optimizer();
  // A schedule's shape may be changed on purpose; the configuration wins.
  kept.mutable_optimizer()->clear_schedule();
  DataConfig& data = *kept.mutable_data();
  data = config.data();
  data.clear_train();
  data.clear_validation();
  data.clear_tokenizer();
  data.clear_prepared();
  data.clear_on_bad_record();
  data.clear_max_bad_fraction();
  TrainConfig& train = *kept.mutable_train();
  train.set_batch_size(config.train().batch_size());
  train.set_precision(config.train().precision());
  train.set_seed(config.train().seed());
  train.set_z_loss(config.train().z_loss());
  train.set_label_smoothing(config.train().label_smoothing());
  train.set_loss_denominator(config.train().loss_denominator());
  train.set_reduction(config.train().reduction());
  if (config.train().reduction() == TrainConfig::EXACT) {
    train.set_micro_batch_size(config.train().micro_batch_size());
  }
  return kept;
}

// What must not change when a run continues, besides the configuration, under the names of the
// attributes that hold it. What older checkpoints do not hold is not compared.
std::map<std::string, std::string> WhatMustAgree(const RunIdentity& identity) {
  return {{kTokenizer, identity.tokenizer_digest}, {kData, identity.data_digest}};
}

void RequireFinite(std::span<const TensorRecord> tensors, int64_t step, const Path& root) {
  const std::string bad = NotFinite(tensors);
  if (bad.empty()) return;
  const std::vector<CheckpointRef> saved = ListCheckpoints(root);
  const std::string good =
      saved.empty() ? "There is no checkpoint."
                    : fmt::format("The last good checkpoint is {}.", saved.back().path.string());
  Fail(ExitCode::kDiverged,
       "after step {} the state is not finite and is not saved: {}. {} Lower "
       "optimizer.schedule.rate, or correct other settings of the optimizer",
       step, bad, good);
}

}  // namespace

void SaveSnapshot(const Path& root, const RunIdentity& identity, int64_t step,
                  const SkippedSteps& skipped, Replica& replica, const CheckpointConfig& options) {
  CheckpointInfo info{.step = step,
                      .run_id = identity.run_id,
                      .attributes = {{kConfig, MinimalConfigText(identity.config)},
                                     {kSkipped, skipped.ToText()},
                                     {kInitial, identity.initial},
                                     {"world_size", std::to_string(identity.world_size)}}};
  info.attributes.merge(WhatMustAgree(identity));
  const std::vector<TensorRecord> tensors = replica.Tensors();
  RequireFinite(tensors, step, root);
  const FileRecord tokenizer{kTokenizerFile, identity.tokenizer_model};
  SaveCheckpoint(root, info, tensors,
                 {.keep = options.keep(), .milestone_every = options.milestone_every()},
                 {&tokenizer, 1});
}

void ReadTensors(Checkpoint& checkpoint, std::span<const HostTensor> tensors) {
  for (const HostTensor& tensor : tensors) checkpoint.Read(tensor.name, tensor.view);
  const std::string bad = NotFinite(RecordsOf(tensors));
  if (bad.empty()) return;
  Fail(ExitCode::kCheckpoint,
       "{} holds values that are not finite, so nothing can be computed with it: {}; use an older "
       "checkpoint",
       checkpoint.path().string(), bad);
}

void LoadSnapshot(Checkpoint& checkpoint, Replica& replica, SkippedSteps* skipped,
                  RunIdentity* identity) {
  const std::vector<HostTensor> tensors = replica.HostTensors();
  if (tensors.size() != checkpoint.tensors().size()) {
    Fail(ExitCode::kCheckpoint, "{} holds {} tensors, the run has {}", checkpoint.path().string(),
         checkpoint.tensors().size(), tensors.size());
  }
  ReadTensors(checkpoint, tensors);
  replica.Commit();
  // The first checkpoints have no such attributes: nothing was skipped or taken over.
  skipped->Restore(AttributeOrNone(checkpoint, kSkipped));
  identity->initial = AttributeOrNone(checkpoint, kInitial);
}

std::string TokenizerDigestOf(const Checkpoint& checkpoint) {
  return AttributeOrNone(checkpoint, kTokenizer);
}

void LoadParameters(Checkpoint& checkpoint, Replica& replica) {
  std::vector<HostTensor> parameters = replica.HostTensors();
  std::erase_if(parameters, [](const HostTensor& tensor) {
    return !tensor.name.starts_with(kParametersGroup);
  });
  ReadTensors(checkpoint, parameters);
  replica.CommitParameters();
}

Config ConfigOf(const Checkpoint& checkpoint, std::span<const std::string> overrides,
                const ConfigPurpose& purpose) {
  const std::string source = checkpoint.path().string();
  const std::string& stored = Attribute(checkpoint, kConfig);
  if (!checkpoint.HasFile(kTokenizerFile)) return ParseConfig(source, stored, overrides, purpose);
  Config own = ParseConfig(source, stored, {}, kForModel);
  own.mutable_data()->clear_tokenizer();
  const std::string text = MinimalConfigText(own);
  ConfigPurpose but_tokenizer = purpose;
  but_tokenizer.tokenizer = false;
  Config config = ParseConfig(source, text, overrides, but_tokenizer);
  return config.data().has_tokenizer() ? ParseConfig(source, text, overrides, purpose) : config;
}

Tokenizer TokenizerOf(Checkpoint& checkpoint, const Config& config) {
  const std::string& given = config.data().tokenizer();
  const int32_t extra_ids = config.data().extra_ids();
  const Path own = checkpoint.path() / kTokenizerFile;
  std::optional<Tokenizer> tokenizer;
  if (!given.empty()) {
    tokenizer.emplace(given, extra_ids);
  } else {
    tokenizer.emplace(own, checkpoint.ReadFile(kTokenizerFile).value(), extra_ids);
  }
  const std::string digest = ToHex(tokenizer->digest());
  if (const std::string& trained = Attribute(checkpoint, kTokenizer); digest != trained) {
    Fail(ExitCode::kData,
         "{} (XXH3-128 {}) is not the tokenizer that {} was trained with (XXH3-128 {}){}",
         tokenizer->path().string(), digest, checkpoint.path().string(), trained,
         checkpoint.HasFile(kTokenizerFile) ? "; leave data.tokenizer out: the checkpoint holds it"
                                            : "; set data.tokenizer to that one");
  }
  if (tokenizer->vocabulary_size() > config.model().vocabulary_size()) {
    Fail(ExitCode::kConfig,
         "model.vocabulary_size {} is smaller than the tokenizer's {} pieces and sentinels",
         config.model().vocabulary_size(), tokenizer->vocabulary_size());
  }
  return std::move(*tokenizer);
}

void CheckContinues(const Checkpoint& checkpoint, const RunIdentity& identity) {
  std::vector<std::string> differences = ConfigDifferences(
      WhatDecidesTheNumbers(ConfigOf(checkpoint)), WhatDecidesTheNumbers(identity.config));
  for (const auto& [name, now] : WhatMustAgree(identity)) {
    const auto then = checkpoint.info().attributes.find(name);
    if (then == checkpoint.info().attributes.end() || then->second == now) continue;
    differences.push_back(fmt::format("{}: {} -> {}", name, Printable(then->second), now));
  }
  if (differences.empty()) return;
  Fail(ExitCode::kCheckpoint,
       "{} was made with other settings, so the run cannot continue from it:\n  {}\nRestore the "
       "settings, choose another train.directory, or start from its parameters with "
       "checkpoint.initial",
       checkpoint.path().string(), Join(differences, "\n  "));
}

Path WithoutCheckpointFile(const Path& path) {
  const Path name = path.filename();
  if (name != kManifestName && name != kIndexName) return path;
  const Path directory = path.has_parent_path() ? path.parent_path() : ".";
  return Exists(directory / kManifestName) ? directory : path;
}

Checkpoint OpenNewest(const Path& place) {
  const Path path = WithoutCheckpointFile(place);
  if (!Exists(path)) Fail(ExitCode::kCheckpoint, "{} does not exist", path.string());
  if (!std::filesystem::is_directory(path)) {
    Fail(ExitCode::kCheckpoint, "{} is not a directory; give a run's, or a checkpoint's",
         path.string());
  }
  if (Exists(path / kManifestName)) return Checkpoint(path);
  const Path inner = path / "checkpoints";
  const Path root = Exists(inner) ? inner : path;
  if (std::optional<Checkpoint> found = FindNewestValid(root, Recovery::kReadOnly)) {
    return std::move(*found);
  }
  Fail(ExitCode::kCheckpoint, "{} holds no checkpoint", path.string());
}

}  // namespace syntra
