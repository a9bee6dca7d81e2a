// SPDX-License-Identifier: Apache-2.0
#include "convert/stored_model.h"

#include <algorithm>

#include "base/text.h"
#include "checkpoint/finite.h"
#include "checkpoint/layout.h"

namespace syntra {
namespace {

// The tensors of a checkpoint whose names begin with a prefix, which is left out of them.
class CheckpointSource final : public TensorSource {
 public:
  CheckpointSource(std::shared_ptr<Checkpoint> checkpoint, std::string prefix,
                   const std::string& group)
      : checkpoint_(std::move(checkpoint)), prefix_(std::move(prefix)) {
    for (const auto& [name, entry] : checkpoint_->tensors()) {
      if (name.starts_with(group)) tensors_.emplace(name.substr(prefix_.size()), entry.type);
    }
  }

  void Read(std::string_view name, std::span<float> values) override {
    checkpoint_->Read(prefix_ + std::string(name), {values.data(), tensors_.find(name)->second});
  }

 private:
  std::shared_ptr<Checkpoint> checkpoint_;
  std::string prefix_;
};

bool HasGroup(const Checkpoint& checkpoint, const char* group) {
  return std::ranges::any_of(checkpoint.tensors(),
                             [&](const auto& entry) { return entry.first.starts_with(group); });
}

std::string SourceOf(const Checkpoint& checkpoint) {
  std::string path = std::filesystem::absolute(checkpoint.path()).lexically_normal().string();
  const CheckpointInfo& info = checkpoint.info();
  if (info.run_id.empty()) return path;
  return fmt::format("{} (step {} of run {})", path, info.step, Printable(info.run_id));
}

}  // namespace

StoredParameters ParametersOf(Checkpoint checkpoint) {
  StoredParameters stored{.path = checkpoint.path(), .source = SourceOf(checkpoint)};
  stored.tokenizer_identity = AttributeOrNone(checkpoint.info(), kTokenizerAttribute);
  const auto shared = std::make_shared<Checkpoint>(std::move(checkpoint));
  // Single files of others have no groups.
  const std::string group = HasGroup(*shared, kParametersGroup) ? kParametersGroup : "";
  stored.parameters = std::make_unique<CheckpointSource>(shared, group, group);
  if (HasGroup(*shared, kOptimizerGroup)) {
    stored.optimizer = std::make_unique<CheckpointSource>(shared, "", kOptimizerGroup);
    stored.optimizer_steps = shared->info().step + OptimizerStepsBefore(*shared);
  }
  return stored;
}

void ReadFinite(StoredParameters& stored, const std::string& name, std::span<float> values) {
  stored.parameters->Read(name, values);
  const TensorRecord record{
      name, {DType::kF32, {static_cast<int64_t>(values.size())}}, std::as_bytes(values).data()};
  CheckFinite(stored.path, {&record, 1});
}

}  // namespace syntra
