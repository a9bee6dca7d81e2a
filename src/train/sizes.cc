// SPDX-License-Identifier: Apache-2.0
#include "train/sizes.h"

#include <algorithm>
#include <functional>

#include "data/example.h"
#include "model/programs.h"
#include "optim/optimizer.h"
#include "optim/shares.h"
#include "program/executable.h"
#include "train/log_perplexity.h"
#include "train/replica.h"
#include "train/step.h"

namespace syntra {

namespace {

// The training program of one micro-batch, and what it was recorded from.
struct Planned {
  TrainingPlan plan;
  Model model;
  ParameterStore parameters;
  BatchShape shape;
  Program program;

  Planned(const Config& config, int ranks, const Device& device)
      : plan(TrainingPlan::Of(config, ranks, device)),
        model(plan.model),
        parameters(DeclareParameters(model, plan.shards)) {
    const ExampleLengths row = RowSlots(config);
    shape = {plan.partition.micro_batch_rows, row.inputs, row.targets};
    program =
        TrainingProgram(model, parameters, plan.activations, shape, plan.loss, plan.recompute);
  }
};

// Of each share of the update, in the order of the ranks.
std::vector<std::unique_ptr<Optimizer>> OptimizersOf(const TrainingPlan& plan,
                                                     const ParameterStore& parameters) {
  const std::vector<SharedPiece> shares =
      UpdateShares(parameters, GrainOf(plan.optimizer), plan.shards, plan.bucket_elements);
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (int rank = 0; rank < plan.shards; ++rank) {
    optimizers.push_back(MakeOptimizer(plan.optimizer, parameters, RangesOf(shares, rank)));
  }
  return optimizers;
}

double BytesOf(int64_t elements) { return static_cast<double>(elements) * sizeof(float); }

double CheckpointBytes(const ParameterStore& parameters, const Optimizer& optimizer) {
  int64_t elements = parameters.element_count();
  for (const StateTensor& tensor : optimizer.state()) elements += tensor.shape.size();
  return BytesOf(elements);
}

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
    const Program program =
        EvaluationProgram(planned.model, planned.parameters, planned.plan.activations, shape);
    bytes = std::max(bytes, static_cast<double>(PlanOn(backend, program).arena_bytes));
  }
  return bytes;
}

}  // namespace

std::vector<LiveBlock> LargestAtPeak(const Config& config, size_t count) {
  const Planned planned(config, 1, Host());
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
  Planned planned(config, ranks, backend.device());
  const ParameterStore& parameters = planned.parameters;
  const auto optimizers = OptimizersOf(planned.plan, parameters);
  const Optimizer& largest =
      **std::ranges::max_element(optimizers, {}, [](const auto& o) { return o->state_elements(); });
  const BatchPartition& partition = planned.plan.partition;
  RunSizes sizes;
  sizes.parameters = parameters.element_count();
  sizes.trainable_parameters = parameters.trainable_element_count();
  sizes.flops_per_step =
      planned.program.model_flops() * static_cast<double>(partition.micro_batches());
  sizes.rows = planned.shape.rows;
  sizes.input_length = planned.shape.input_length;
  sizes.target_length = planned.shape.target_length;
  sizes.parameter_bytes = BytesOf(parameters.arena_elements());
  if (config.train().reduction() == TrainConfig::EXACT) {
    sizes.gradient_buffers += GradientTree::BuffersFor(partition.micro_batches_per_rank());
  }
  sizes.gradient_bytes = BytesOf(parameters.gradient_elements()) * sizes.gradient_buffers;
  sizes.is_sharded = planned.plan.shards > 1;
  sizes.optimizer_bytes = BytesOf(largest.state_elements());
  sizes.activation_bytes = static_cast<double>(PlanOn(backend, planned.program).arena_bytes);
  sizes.evaluation_bytes = EvaluationBytes(config, planned, backend);
  sizes.update_bytes =
      static_cast<double>(PlanOn(backend, largest.UpdateProgram(parameters)).arena_bytes);
  sizes.asynchronous_saves = planned.plan.asynchronous_saves;
  sizes.checkpoint_bytes = CheckpointBytes(parameters, largest);
  return sizes;
}

std::vector<ShareSizes> ShareSizesOf(const Config& config, int ranks) {
  const TrainingPlan plan = TrainingPlan::Of(config, ranks, Host());
  const Model model(plan.model);
  const ParameterStore parameters = DeclareParameters(model, plan.shards);
  const auto optimizers = OptimizersOf(plan, parameters);
  std::vector<ShareSizes> list;
  for (int rank = 0; rank < ranks; ++rank) {
    const int share = plan.shards > 1 ? rank : 0;
    ShareSizes& sizes = list.emplace_back(
        ShareSizes{.optimizer_bytes = BytesOf(optimizers[share]->state_elements())});
    for (const Parameter& parameter : parameters.all()) {
      if (!parameter.trainable) continue;
      for (const ElementRange& part : optimizers[share]->HeldOf(parameter)) {
        sizes.updated += part.size();
        sizes.parameters.push_back(
            part.size() == parameter.shape.size()
                ? parameter.name
                : fmt::format("{}[{}, {})", parameter.name, part.begin, part.end));
      }
    }
  }
  return list;
}

}  // namespace syntra
