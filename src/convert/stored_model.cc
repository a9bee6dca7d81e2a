// SPDX-License-Identifier: Apache-2.0
#include "convert/stored_model.h"

#include "base/text.h"
#include "checkpoint/finite.h"
#include "checkpoint/layout.h"

namespace syntra {
namespace {

class CheckpointSource final : public TensorSource {
 public:
  explicit CheckpointSource(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {
    const auto& stored = checkpoint_.tensors();
    for (const auto& [name, entry] : stored) {
      if (name.starts_with(kParametersGroup)) prefix_ = kParametersGroup;
    }
    for (const auto& [name, entry] : stored) {
      if (name.starts_with(prefix_)) tensors_.emplace(name.substr(prefix_.size()), entry.type);
    }
  }

  void Read(std::string_view name, std::span<float> values) override {
    checkpoint_.Read(prefix_ + std::string(name), {values.data(), tensors_.find(name)->second});
  }

 private:
  Checkpoint checkpoint_;
  std::string prefix_;  // none in single files of others
};

std::string SourceOf(const Checkpoint& checkpoint) {
  const std::string path = std::filesystem::absolute(checkpoint.path()).lexically_normal().string();
  const CheckpointInfo& info = checkpoint.info();
  if (info.run_id.empty()) return path;
  return fmt::format("{} (step {} of run {})", path, info.step, Printable(info.run_id));
}

}  // namespace

StoredParameters ParametersOf(Checkpoint checkpoint) {
  const auto& attributes = checkpoint.info().attributes;
  const auto tokenizer = attributes.find(kTokenizerAttribute);
  StoredParameters stored{checkpoint.path(), SourceOf(checkpoint),
                          tokenizer == attributes.end() ? "" : tokenizer->second, nullptr};
  stored.parameters = std::make_unique<CheckpointSource>(std::move(checkpoint));
  return stored;
}

void ReadFinite(StoredParameters& stored, const std::string& name, std::span<float> values) {
  stored.parameters->Read(name, values);
  const TensorRecord record{
      name, {DType::kF32, {static_cast<int64_t>(values.size())}}, std::as_bytes(values).data()};
  const std::string bad = NotFinite({&record, 1});
  if (bad.empty()) return;
  Fail(ExitCode::kCheckpoint,
       "{} holds values that are not finite, so nothing can be computed with it: {}",
       stored.path.string(), bad);
}

}  // namespace syntra
