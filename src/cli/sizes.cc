#include "cli/sizes.h"

#include "core/span_lengths.h"
#include "model/programs.h"
#include "optim/optimizer.h"
#include "program/executable.h"
#include "train/replica.h"
#include "train/step.h"

namespace syntra {

Sizes SizesOf(const Config& config, int ranks) {
  const EncoderDecoder model(config.model());
  ParameterStore parameters = DeclareParameters(model);
  const auto optimizer = MakeOptimizer(config.optimizer(), parameters);
  const BatchPartition partition = BatchPartition::Of(config.train(), ranks);
  const SpanLengths lengths = LongestSegment(
      config.data().input_length(), config.data().noise_density(), config.data().mean_span_length());
  const BatchShape shape{partition.micro_batch_rows, config.data().input_length(), lengths.targets};
  const Program program = TrainingProgram(
      model, parameters, ActivationType(config.train().precision()), shape,
      {config.train().z_loss(), config.train().label_smoothing()}, config.train().recompute());

  Sizes sizes;
  sizes.parameters = parameters.element_count();
  sizes.trainable_parameters = parameters.trainable_element_count();
  sizes.flops_per_step = 3 * program.forward_flops() *
                         static_cast<double>(partition.batch_size / partition.micro_batch_rows);
  sizes.rows = shape.rows;
  sizes.input_length = shape.input_length;
  sizes.target_length = shape.target_length;
  const double arena = static_cast<double>(parameters.arena_elements()) * sizeof(float);
  sizes.parameter_bytes = arena;
  sizes.gradient_bytes = arena;
  sizes.optimizer_bytes = static_cast<double>(optimizer->state_elements()) * sizeof(float);
  sizes.activation_bytes = static_cast<double>(PlanOnCpu(program).arena_bytes);
  sizes.checkpoint_bytes = sizes.parameter_bytes + sizes.optimizer_bytes;
  return sizes;
}

}  // namespace syntra
