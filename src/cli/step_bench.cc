// SPDX-License-Identifier: Apache-2.0
#include "cli/step_bench.h"

#include "base/clock.h"
#include "core/random.h"
#include "train/step.h"

namespace syntra {
namespace {

struct Ids {
  int32_t first, count;
};

// A full batch of random tokens, and classes: shapes and costs of training, no corpus needed.
Batch RandomBatch(const TrainingPlan& plan) {
  const BatchShape& shape = plan.shape();
  const ModelConfig& model = plan.config().model();
  const Ids tokens{2, model.vocabulary_size() - 2};
  const bool classifies = ArchitectureOf(model).outputs() == Outputs::kClasses;
  const Ids targets = classifies ? Ids{1, model.classifier().classes()} : tokens;
  Batch batch(shape.rows, shape.input_length, shape.target_length);
  uint64_t counter = 0;
  for (const auto& [name, ids] :
       {std::pair{"encoder_ids", tokens}, std::pair{"decoder_ids", tokens},
        std::pair{"targets", targets}}) {
    if (!batch.tensors().contains(name)) continue;
    for (int32_t& id : batch[name]) {
      const uint32_t bits = RandomAt({1, 2}, counter++)[0];
      id = ids.first + static_cast<int32_t>(UniformBelow(bits, ids.count));
    }
  }
  for (const char* name : {"encoder_segments", "decoder_segments"}) {
    if (batch.tensors().contains(name)) std::ranges::fill(batch[name], 1);
  }
  batch.target_tokens = std::ssize(batch["targets"]);
  return batch;
}

}  // namespace

StepBench::StepBench(const Config& config, Communicator* ranks)
    : backend_(ChooseBackend(config.train().device(), ranks)),
      replica_(TrainingPlan::Make(config, {.backend = backend_.get()}), 0),
      batch_(RandomBatch(plan())) {
  replica_.InitializeParameters(config.train().seed());
}

std::array<double, 2> StepBench::Step(bool apart) {
  const int64_t index = next_++;
  std::array<double, 2> seconds;
  const auto timed = [&](size_t phase, auto&& run) {
    const auto start = Clock::now();
    run();
    seconds[phase] = SecondsSince(start);
  };
  timed(0, [&] {
    replica_.Differentiate(batch_, FactsOf(index), Gradients::kReplace);
    if (apart) backend_->device().Wait();
  });
  timed(1, [&] {
    replica_.Update({.step = index, .rate = 1e-4});
    backend_->device().Wait();
  });
  return seconds;
}

BatchFacts StepBench::FactsOf(int64_t step) const {
  const auto inverse = [](int64_t count) { return 1.0 / static_cast<double>(count); };
  BatchFacts facts{.seed = 1,
                   .step = step,
                   .inverse_denominator = inverse(batch_.target_tokens),
                   .inverse_positions = {}};
  const Model& model = replica_.model();
  for (const Side side : model.architecture().sides()) {
    if (model.stack(side).ponders()) {
      facts.inverse_positions[side] = inverse(PositionsOf(batch_, side));
    }
  }
  return facts;
}

}  // namespace syntra
