// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_report.h"

#include <fmt/format.h>

#include <string>

#include "base/text.h"
#include "plan/op_work.h"
#include "plan/recompute_choices.h"

namespace syntra {
namespace {

std::string ShapeText(const BatchShape& shape) {
  return shape.input_length == 0
             ? fmt::format("{} x {}", shape.rows, shape.target_length)
             : fmt::format("{} x {}/{}", shape.rows, shape.input_length, shape.target_length);
}

// Prints what each value of train.recompute would take.
void PrintRecomputeChoices(const TrainingPlan& plan, MemoryNeeds memory) {
  const auto line = [](const std::string& name, const auto&... values) {
    fmt::print("{:22} {:>18} {:>18} {:>18}\n", name, values...);
  };
  line("train.recompute", "activations", "total", "FLOPs added");
  for (const RecomputeChoice& choice : RecomputeChoices(plan)) {
    memory.training = choice.training_bytes;
    const bool is_set = choice.recompute == plan.config().train().recompute();
    line(fmt::format("  {}{}", TrainConfig::Recompute_Name(choice.recompute),
                     is_set ? " (set)" : ""),
         HumanBytes(choice.training_bytes), HumanBytes(memory.total()),
         fmt::format("+ {:.1f} %", 100 * choice.added_flops / plan.flops_per_step()));
  }
}

Json RecomputeChoicesJson(const TrainingPlan& plan, MemoryNeeds memory) {
  Json list = Json::array();
  for (const RecomputeChoice& choice : RecomputeChoices(plan)) {
    memory.training = choice.training_bytes;
    list.push_back({{"recompute", TrainConfig::Recompute_Name(choice.recompute)},
                    {"activation_bytes", choice.training_bytes},
                    {"total_bytes", memory.total()},
                    {"added_flops_per_step", choice.added_flops}});
  }
  return list;
}

}  // namespace

void PrintPlan(const TrainingPlan& plan, bool gpus) {
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("{:22} {:>18}\n", name, value);
  };
  const ParameterStore& parameters = plan.parameters();
  line("parameters", WithThousands(parameters.element_count()));
  if (parameters.trainable_element_count() != parameters.element_count()) {
    line("  of which learn", WithThousands(parameters.trainable_element_count()));
  }
  line("FLOPs a step", HumanCount(plan.flops_per_step()));
  line("micro-batch", ShapeText(plan.shape()));
  const MemoryNeeds memory = MemoryNeedsOn(plan, gpus);
  fmt::print("memory of a rank\n");
  line("  parameters", HumanBytes(memory.parameters));
  if (memory.rounded > 0) line("  their bf16 copies", HumanBytes(memory.rounded));
  const int buffers = memory.gradient_buffers;
  line("  gradients",
       (buffers > 1 ? fmt::format("{} x ", buffers) : "") + HumanBytes(memory.gradients / buffers));
  line("  optimizer state", HumanBytes(memory.optimizer));
  if (memory.decoding_caches > 0) {
    line("  caches for decoding", HumanBytes(memory.decoding_caches));
  }
  line("  activations", HumanBytes(memory.training));
  if (memory.evaluation > 0) line("  or in evaluation", HumanBytes(memory.evaluation));
  if (memory.decoding > 0) line("  or in decoding", HumanBytes(memory.decoding));
  line("  total", HumanBytes(memory.total()));
  line("checkpoint", HumanBytes(plan.checkpoint_bytes()));
  PrintRecomputeChoices(plan, memory);
}

Json PlanJson(const TrainingPlan& plan, bool gpus) {
  const MemoryNeeds memory = MemoryNeedsOn(plan, gpus);
  return {{"parameters", plan.parameters().element_count()},
          {"trainable_parameters", plan.parameters().trainable_element_count()},
          {"flops_per_step", plan.flops_per_step()},
          {"micro_batch_rows", plan.shape().rows},
          {"input_length", plan.shape().input_length},
          {"target_length", plan.shape().target_length},
          {"parameter_bytes", memory.parameters},
          {"rounded_parameter_bytes", memory.rounded},
          {"gradient_buffers", memory.gradient_buffers},
          {"gradient_bytes", memory.gradients},
          {"optimizer_bytes", memory.optimizer},
          {"activation_bytes", memory.training},
          {"evaluation_bytes", memory.evaluation},
          {"decoding_bytes", memory.decoding},
          {"decoding_cache_bytes", memory.decoding_caches},
          {"update_bytes", memory.update},
          {"total_bytes", memory.total()},
          {"checkpoint_bytes", plan.checkpoint_bytes()},
          {"recompute_choices", RecomputeChoicesJson(plan, memory)}};
}

void PrintPlannedOps(const TrainingPlan& plan) {
  fmt::print("{:28} {:>6} {:>10} {:>10}  {}\n", "ops of a step", "calls", "FLOPs", "bytes",
             "operands of each call");
  for (const OpWork& work : OpsOfStep(plan)) {
    fmt::print("{:28} {:6} {:>10} {:>10}  {}\n", work.op, work.calls,
               work.flops > 0 ? HumanCount(work.flops) : "-", HumanBytes(work.bytes),
               work.operands);
  }
}

Json PlannedOpsJson(const TrainingPlan& plan) {
  Json list = Json::array();
  for (const OpWork& work : OpsOfStep(plan)) {
    list.push_back({{"op", work.op},
                    {"operands", work.operands},
                    {"calls", work.calls},
                    {"flops_per_call", work.flops / work.calls},
                    {"bytes_per_call", work.bytes / work.calls}});
  }
  return list;
}

}  // namespace syntra
