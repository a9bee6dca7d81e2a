// SPDX-License-Identifier: Apache-2.0
#include "train/sizes.h"

#include <algorithm>
#include <functional>

#include "data/example.h"
#include "model/programs.h"
#include "optim/optimizer.h"
#include "program/executable.h"
#include "train/log_perplexity.h"
#include "train/replica.h"
#include "train/step.h"

namespace syntra {

namespace {

// The training program of one micro-batch, and what it was recorded from.
struct Planned {
  Model model;
  ParameterStore parameters;
  BatchPartition partition;
  BatchShape shape;
  Program program;

  Planned(const Config& config, int ranks)
      : model(config.model()),
        parameters(DeclareParameters(model)),
        partition(BatchPartition::Of(config.train(), ranks)) {
    const ExampleLengths row = RowSlots(config);
    shape = {partition.micro_batch_rows, row.inputs, row.targets};
    program = TrainingProgram(model, parameters, ActivationType(config.train().precision()), shape,
                              {config.train().z_loss(), config.train().label_smoothing()},
                              config.train().recompute());
  }
};

std::string MadeBy(const Program& program, const Allocation& allocation) {
  const Instruction& instruction = program.instructions[allocation.first];
  std::string text = instruction.op->name;
  for (const Value input : instruction.inputs) {
    if (input && program.info(input).kind == ValueKind::kParameter) {
      text += ' ' + program.info(input).name;
    }
  }
  return text;
}

// Of a run with validation data: what the largest number of rows that its evaluations compute
// together takes.
double EvaluationBytes(const Config& config, Planned& planned, Backend& backend) {
  if (config.data().validation_size() == 0) return 0;
  double bytes = 0;
  for (const int64_t rows : EvaluationRows(config)) {
    const BatchShape shape{rows, planned.shape.input_length, planned.shape.target_length};
    const Program program = EvaluationProgram(planned.model, planned.parameters,
                                              ActivationType(config.train().precision()), shape);
    bytes = std::max(bytes, static_cast<double>(PlanOn(backend, program).arena_bytes));
  }
  return bytes;
}

}  // namespace

std::vector<LiveBlock> LargestAtPeak(const Config& config, size_t count) {
  const Planned planned(config, 1);
  const MemoryPlan plan = PlanOn(CpuBackend(), planned.program);
  std::vector<Allocation> alive;
  for (const Allocation& allocation : plan.allocations) {
    if (allocation.first <= plan.peak_instruction && plan.peak_instruction <= allocation.last)
      alive.push_back(allocation);
  }
  std::ranges::sort(alive, std::greater<>(), &Allocation::bytes);
  if (alive.size() > count) alive.resize(count);
  std::vector<LiveBlock> list;
  for (const Allocation& allocation : alive) {
    const std::string type =
        allocation.value ? ToString(planned.program.info(allocation.value).type) : "workspace";
    list.push_back({allocation.bytes, type, MadeBy(planned.program, allocation)});
  }
  return list;
}

RunSizes RunSizesOf(const Config& config, int ranks, Backend& backend) {
  Planned planned(config, ranks);
  const ParameterStore& parameters = planned.parameters;
  const auto optimizer = MakeOptimizer(config.optimizer(), parameters);
  const BatchPartition& partition = planned.partition;
  RunSizes sizes;
  sizes.parameters = parameters.element_count();
  sizes.trainable_parameters = parameters.trainable_element_count();
  sizes.flops_per_step =
      planned.program.model_flops() * static_cast<double>(partition.micro_batches());
  sizes.rows = planned.shape.rows;
  sizes.input_length = planned.shape.input_length;
  sizes.target_length = planned.shape.target_length;
  const double arena = static_cast<double>(parameters.arena_elements()) * sizeof(float);
  sizes.parameter_bytes = arena;
  if (config.train().reduction() == TrainConfig::EXACT) {
    sizes.gradient_buffers += GradientTree::BuffersFor(partition.micro_batches_per_rank());
  }
  sizes.gradient_bytes = arena * sizes.gradient_buffers;
  sizes.optimizer_bytes = static_cast<double>(optimizer->state_elements()) * sizeof(float);
  sizes.activation_bytes = static_cast<double>(PlanOn(backend, planned.program).arena_bytes);
  sizes.evaluation_bytes = EvaluationBytes(config, planned, backend);
  sizes.checkpoint_bytes = sizes.parameter_bytes + sizes.optimizer_bytes;
  return sizes;
}

}  // namespace syntra
