// SPDX-License-Identifier: Apache-2.0
#include "decode/attention_weights.h"

#include "base/error.h"
#include "model/programs.h"
#include "program/executable.h"

namespace syntra {

std::vector<AttentionWeights> AttentionWeightsOf(const TrainedModel& model, const Batch& batch) {
  const BatchShape shape{batch.rows, batch.input_length, batch.target_length};
  std::vector<Recording::Weights> recorded;
  Program program =
      WeightsProgram(model.model, model.parameters, model.activations, shape, &recorded);
  if (recorded.empty()) {
    Fail(ExitCode::kConfig,
         "no layer of this model weighs positions by a softmax: its mixers have no attention "
         "weights");
  }
  Executable executable(std::move(program), model.backend, model.arenas());
  SetBatchInputs(executable, batch);
  executable.Run();
  std::vector<AttentionWeights> all;
  for (size_t i = 0; i < recorded.size(); ++i) {
    const TensorView view = executable.Tensor(WeightsName(i));
    const Shape& of = view.type.shape;
    const std::span<const float> values = view.As<float>();
    all.push_back({recorded[i].scope,
                   recorded[i].within_sequence,
                   of[0],
                   of[1],
                   of[2],
                   of[3],
                   {values.begin(), values.end()}});
  }
  return all;
}

}  // namespace syntra
