// SPDX-License-Identifier: Apache-2.0
#include "train/snapshot.h"

#include "base/text.h"
#include "checkpoint/finite.h"
#include "checkpoint/layout.h"
#include "checkpoint/read.h"
#include "config/print.h"
#include "data/example.h"
#include "run/run_lock.h"
#include "train/hook.h"
#include "train/replica.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

// Reads these tensors. Throws Error(kCheckpoint) if one is missing, of another type or not finite.
void ReadTensors(Checkpoint& checkpoint, std::span<const HostTensor> tensors) {
  std::vector<TensorDestination> destinations;
  for (const HostTensor& tensor : tensors) {
    if (tensor.whole()) destinations.push_back({tensor.name, {tensor.values, tensor.type}});
  }
  checkpoint.Read(destinations);
  for (const HostTensor& tensor : tensors) {
    if (tensor.whole()) continue;
    tensor.Fill([&](TensorView whole) { checkpoint.Read(tensor.name, whole); });
  }
  CheckFinite(checkpoint.path(), RecordsOf(tensors));
}

}  // namespace

CheckpointInfo InfoOf(const RunIdentity& identity, const RunPosition& position) {
  return {
      .step = position.step,
      .run_id = identity.run_id,
      .attributes = {{kConfigAttribute, MinimalConfigText(identity.config)},
                     {kTokenizerAttribute, identity.tokenizer_identity},
                     {kDataAttribute, identity.data_digest},
                     {kTaskDigestsAttribute, identity.task_digests},
                     {kShardsAttribute, identity.shards_digest},
                     {kValidationAttribute, identity.validation_digest},
                     {kTaskValidationAttribute, identity.task_validation_digests},
                     {kSkippedAttribute, position.skipped_steps},
                     {kLossesAttribute, position.recent_losses},
                     {kRollbacksAttribute, position.rollbacks},
                     {kPositionAttribute, position.data_position},
                     {kInitialAttribute, identity.initial},
                     {kOptimizerStepsAttribute, std::to_string(identity.optimizer_steps_before)},
                     {"world_size", std::to_string(identity.world_size)}}};
}

int64_t SavedEvaluationsEvery(const Config& config) {
  return HasTasks(config.data()) ? config.evaluation().every() : 0;
}

SaveSchedule ScheduleOf(const Config& config) {
  const int64_t every = config.checkpoint().every(), evaluated = SavedEvaluationsEvery(config);
  if (every == 0) return {};
  return [=](int64_t step) { return IsDue(step, every) || IsDue(step, evaluated); };
}

SaveOptions OptionsOf(const Config& config, const RunLock& lock) {
  return {.keep = config.checkpoint().keep(),
          .milestone_every = config.checkpoint().milestone_every(),
          .schedule = ScheduleOf(config),
          .before_commit = [&lock] { lock.CheckHeld(); }};
}

void RequireFinite(const std::string& bad, int64_t step, const Path& root) {
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

void SaveSnapshot(const Path& root, const RunIdentity& identity, const RunPosition& position,
                  std::span<const TensorRecord> state, const SaveOptions& options) {
  RequireFinite(NotFinite(state), position.step, root);
  const FileRecord tokenizer{kTokenizerFile, identity.tokenizer_model};
  SaveCheckpoint(root, InfoOf(identity, position), state, options, {&tokenizer, 1});
}

RunPosition LoadSnapshot(Checkpoint& checkpoint, Replica& replica, RunIdentity* identity) {
  const std::vector<HostTensor> tensors = replica.HostTensors();
  if (tensors.size() != checkpoint.tensors().size()) {
    Fail(ExitCode::kCheckpoint, "{} holds {} tensors, the run has {}", checkpoint.path().string(),
         checkpoint.tensors().size(), tensors.size());
  }
  ReadTensors(checkpoint, tensors);
  replica.Commit();
  // The first checkpoints lack some attributes: nothing was skipped or taken over.
  identity->initial = AttributeOrNone(checkpoint.info(), kInitialAttribute);
  identity->optimizer_steps_before = OptimizerStepsBefore(checkpoint);
  return {.step = checkpoint.info().step,
          .skipped_steps = AttributeOrNone(checkpoint.info(), kSkippedAttribute),
          .recent_losses = AttributeOrNone(checkpoint.info(), kLossesAttribute),
          .rollbacks = AttributeOrNone(checkpoint.info(), kRollbacksAttribute),
          .data_position = AttributeOrNone(checkpoint.info(), kPositionAttribute)};
}

std::string TokenizerIdentityOf(const Checkpoint& checkpoint) {
  return AttributeOrNone(checkpoint.info(), kTokenizerAttribute);
}

void LoadParameters(Checkpoint& checkpoint, EvaluationReplica& replica) {
  ReadTensors(checkpoint, replica.ParameterTensors());
  replica.CommitParameters();
}

Config ConfigOf(const Path& path, const CheckpointInfo& info) {
  return ParseConfig(path.string(), AttributeOf(path, info, kConfigAttribute), {}, kForModel);
}

Config ConfigOf(const Checkpoint& checkpoint, std::span<const std::string> overrides,
                const ConfigPurpose& purpose) {
  const std::string source = checkpoint.path().string();
  const std::string& stored = AttributeOf(checkpoint.path(), checkpoint.info(), kConfigAttribute);
  if (!checkpoint.HasFile(kTokenizerFile)) return ParseConfig(source, stored, overrides, purpose);
  Config own = ParseConfig(source, stored, {}, kForModel);
  own.mutable_data()->clear_tokenizer();
  return ParseConfig(source, MinimalConfigText(own), overrides, purpose);
}

Tokenizer TokenizerOf(Checkpoint& checkpoint, const Config& config) {
  const std::string& given = config.data().tokenizer();
  const int32_t extra_ids = config.data().extra_ids();
  std::optional<Tokenizer> tokenizer;
  if (!given.empty()) {
    tokenizer.emplace(given, extra_ids);
  } else if (const auto own = checkpoint.ReadFile(kTokenizerFile)) {
    tokenizer.emplace(checkpoint.path() / kTokenizerFile, *own, extra_ids);
  } else {
    Fail(ExitCode::kConfig,
         "{} holds no tokenizer; set data.tokenizer to the one that it was trained with",
         checkpoint.path().string());
  }
  const std::string& trained =
      AttributeOf(checkpoint.path(), checkpoint.info(), kTokenizerAttribute);
  if (tokenizer->identity() != trained) {
    Fail(ExitCode::kData,
         "{} (XXH3-128 {}) is not the tokenizer that {} was trained with (XXH3-128 {}){}",
         tokenizer->path().string(), tokenizer->identity(), checkpoint.path().string(),
         Printable(trained),
         checkpoint.HasFile(kTokenizerFile) ? "; leave data.tokenizer out: the checkpoint holds it"
                                            : "; set data.tokenizer to that one");
  }
  CheckFitsTrained(*tokenizer, config.model().vocabulary_size());
  return std::move(*tokenizer);
}

}  // namespace syntra
