// SPDX-License-Identifier: Apache-2.0
#include "convert/average.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/recover.h"
#include "convert/formats.h"
#include "model/model.h"
#include "model/programs.h"

namespace syntra {
namespace {

// Tensors whose values are the means of those of the same names in several sources. Parameters that
// are not trained are the first source's: of random features that were redrawn in between, the mean
// would be shorter vectors.
class MeanSource final : public TensorSource {
 public:
  MeanSource(std::vector<std::unique_ptr<TensorSource>> sources, const ModelConfig& model)
      : sources_(std::move(sources)), parameters_(DeclareParameters(Model(model))) {
    tensors_ = sources_.front()->tensors();
  }

  void Read(std::string_view name, std::span<float> values) override {
    const Parameter* parameter = parameters_.Find(std::string(name));
    if (parameter && !parameter->trainable) return sources_.front()->Read(name, values);
    std::vector<double> sums(values.size());
    for (const auto& source : sources_) {
      source->Read(name, values);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    }
    const auto count = static_cast<double>(sources_.size());
    std::ranges::transform(sums, values.begin(),
                           [count](double sum) { return static_cast<float>(sum / count); });
  }

 private:
  std::vector<std::unique_ptr<TensorSource>> sources_;
  ParameterStore parameters_;
};

void RequireSameModel(const StoredModel& newest, const StoredModel& other) {
  if (IsSameModel(other, newest) && other.tokenizer == newest.tokenizer &&
      other.parameters->tensors() == newest.parameters->tensors()) {
    return;
  }
  Fail(ExitCode::kCheckpoint,
       "{} and {} cannot be averaged: their models or their tokenizers differ",
       newest.path.string(), other.path.string());
}

}  // namespace

StoredModel OpenAverage(const Path& path, int count, const Path& tokenizer) {
  const std::vector<Path> checkpoints = CheckpointsAt(path);
  if (std::ssize(checkpoints) < count) {
    Fail(ExitCode::kConfig,
         "{} holds {}, fewer than the {} of --average; a run keeps as many as checkpoint.keep says",
         path.string(), Counted(std::ssize(checkpoints), "checkpoint"), count);
  }
  std::vector<StoredModel> models;
  for (const Path& checkpoint : std::span(checkpoints).first(count)) {
    if (TypeOf(checkpoint) != std::filesystem::file_type::directory) {
      Fail(ExitCode::kCheckpoint, "{} is not a directory", checkpoint.string());  // perhaps a link
    }
    models.push_back(kSyntraFormat.open(checkpoint, tokenizer));
    RequireSameModel(models.front(), models.back());
  }
  std::string steps;
  std::vector<std::unique_ptr<TensorSource>> sources;
  for (StoredModel& model : models) {
    steps += fmt::format("{}{}", steps.empty() ? "" : ", ", model.step);
    sources.push_back(std::move(model.parameters));
  }
  StoredModel mean = std::move(models.front());
  mean.parameters = std::make_unique<MeanSource>(std::move(sources), mean.config.model());
  mean.optimizer = nullptr;
  mean.source = fmt::format("the mean of {} checkpoints of {} (steps {})", count,
                            std::filesystem::absolute(path).lexically_normal().string(), steps);
  return mean;
}

}  // namespace syntra
