#include "train/snapshot.h"

#include "base/log.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/recover.h"
#include "config/print.h"

namespace syntra {
namespace {

constexpr const char* kConfig = "config";
constexpr const char* kSkipped = "skipped_steps";

void Read(Checkpoint& checkpoint, const TensorRecord& record) {
  checkpoint.Read(record.name, TensorView{const_cast<std::byte*>(record.data), record.type});
}

}  // namespace

void SaveSnapshot(const Path& root, const RunIdentity& identity, int64_t step,
                  const SkippedSteps& skipped, Replica& replica, const CheckpointConfig& options) {
  const CheckpointInfo info{.step = step,
                            .run_id = identity.run_id,
                            .attributes = {{kConfig, MinimalConfigText(identity.config)},
                                           {kTokenizerAttribute, identity.tokenizer_digest},
                                           {kDataAttribute, identity.data_digest},
                                           {kShardsAttribute, identity.shards_digest},
                                           {kValidationAttribute, identity.validation_digest},
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
  // Early checkpoints do not have the attribute: nothing was skipped.
  const auto& attributes = checkpoint.info().attributes;
  skipped->Restore(attributes.contains(kSkipped) ? attributes.at(kSkipped) : "");
}

void LoadParameters(Checkpoint& checkpoint, Replica& replica) {
  for (const TensorRecord& record : replica.Tensors()) {
    if (record.name.starts_with("parameters/")) Read(checkpoint, record);
  }
  replica.Commit();
}

const std::string& AttributeOf(const Path& path, const CheckpointInfo& info, const char* name) {
  const auto it = info.attributes.find(name);
  if (it == info.attributes.end()) {
    Fail(ExitCode::kCheckpoint, "{} has no attribute {}", path.string(), name);
  }
  return it->second;
}

Config ConfigOf(const Path& path, const CheckpointInfo& info,
                std::span<const std::string> overrides, const ConfigPurpose& purpose) {
  return ParseConfig(path.string(), AttributeOf(path, info, kConfig), overrides, purpose);
}

Config ConfigOf(const Checkpoint& checkpoint, std::span<const std::string> overrides,
                const ConfigPurpose& purpose) {
  return ConfigOf(checkpoint.path(), checkpoint.info(), overrides, purpose);
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
