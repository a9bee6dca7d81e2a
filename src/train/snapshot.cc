#include "train/snapshot.h"

#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/recover.h"
#include "config/print.h"

namespace syntra {
namespace {

constexpr const char* kConfig = "config";
constexpr const char* kTokenizer = "tokenizer_digest";
constexpr const char* kData = "data_digest";
constexpr const char* kValidation = "validation_digest";
constexpr const char* kSkipped = "skipped_steps";

const std::string& Attribute(const Checkpoint& checkpoint, const char* name) {
  const auto it = checkpoint.info().attributes.find(name);
  if (it == checkpoint.info().attributes.end()) {
    Fail(ExitCode::kCheckpoint, "{} has no attribute {}", checkpoint.path().string(), name);
  }
  return it->second;
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

// Checkpoints of before there was the attribute do not tell.
void WarnOfOtherValidation(const Checkpoint& checkpoint, const RunIdentity& identity) {
  const auto& attributes = checkpoint.info().attributes;
  const auto then = attributes.find(kValidation);
  if (then == attributes.end() || then->second.empty() || identity.validation_digest.empty() ||
      then->second == identity.validation_digest) {
    return;
  }
  Log().warn(
      "the validation corpus is not the one that {} was evaluated on; log-perplexities from here "
      "on cannot be compared with those before",
      checkpoint.path().string());
}

void Read(Checkpoint& checkpoint, const TensorRecord& record) {
  checkpoint.Read(record.name, TensorView{const_cast<std::byte*>(record.data), record.type});
}

}  // namespace

void SaveSnapshot(const Path& root, const RunIdentity& identity, int64_t step,
                  const SkippedSteps& skipped, Replica& replica, const CheckpointConfig& options) {
  const CheckpointInfo info{.step = step,
                            .run_id = identity.run_id,
                            .attributes = {{kConfig, MinimalConfigText(identity.config)},
                                           {kTokenizer, identity.tokenizer_digest},
                                           {kData, identity.data_digest},
                                           {kValidation, identity.validation_digest},
                                           {kSkipped, skipped.ToText()},
                                           {"world_size", std::to_string(identity.world_size)}}};
  SaveCheckpoint(root, info, replica.Tensors(),
                 {.keep = options.keep(), .milestone_every = options.milestone_every()});
}

void LoadSnapshot(Checkpoint& checkpoint, Replica& replica, SkippedSteps* skipped) {
  const std::vector<TensorRecord> records = replica.Tensors();
  if (records.size() != checkpoint.tensors().size()) {
    Fail(ExitCode::kCheckpoint, "{} holds {} tensors, the run has {}", checkpoint.path().string(),
         checkpoint.tensors().size(), records.size());
  }
  for (const TensorRecord& record : records) Read(checkpoint, record);
  replica.Commit();
  // Checkpoints of before there was the attribute count none.
  const auto& attributes = checkpoint.info().attributes;
  skipped->Restore(attributes.contains(kSkipped) ? attributes.at(kSkipped) : "");
}

void LoadParameters(Checkpoint& checkpoint, Replica& replica) {
  for (const TensorRecord& record : replica.Tensors()) {
    if (record.name.starts_with("parameters/")) Read(checkpoint, record);
  }
  replica.Commit();
}

Config ConfigOf(const Checkpoint& checkpoint, std::span<const std::string> overrides,
                const ConfigPurpose& purpose) {
  return ParseConfig(checkpoint.path().string(), Attribute(checkpoint, kConfig), overrides,
                     purpose);
}

void CheckContinues(const Checkpoint& checkpoint, const RunIdentity& identity) {
  std::vector<std::string> differences = ConfigDifferences(
      WhatDecidesTheNumbers(ConfigOf(checkpoint)), WhatDecidesTheNumbers(identity.config));
  const auto compare = [&](const char* name, const std::string& now) {
    const std::string& then = Attribute(checkpoint, name);
    if (then != now) differences.push_back(fmt::format("{}: {} -> {}", name, then, now));
  };
  compare(kTokenizer, identity.tokenizer_digest);
  if (Attribute(checkpoint, kData) != identity.shards_digest) {
    compare(kData, identity.data_digest);
  }
  if (differences.empty()) return WarnOfOtherValidation(checkpoint, identity);
  Fail(ExitCode::kCheckpoint,
       "{} was made with other settings, so the run cannot continue from it:\n  {}\nRestore the "
       "settings, choose another train.directory, or start from its parameters with "
       "checkpoint.initial",
       checkpoint.path().string(), Join(differences, "\n  "));
}

Checkpoint OpenNewest(const Path& path) {
  if (std::filesystem::exists(path / kManifestName)) return Checkpoint(path);
  const Path inner = path / "checkpoints";
  const Path root = std::filesystem::is_directory(inner) ? inner : path;
  if (std::optional<Checkpoint> found = FindNewestValid(root, Recovery::kReadOnly)) {
    return std::move(*found);
  }
  Fail(ExitCode::kCheckpoint, "{} holds no checkpoint", path.string());
}

}  // namespace syntra
