// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_details.h"

#include <algorithm>
#include <functional>

#include "program/executable.h"

namespace syntra {
namespace {

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

ShareSizes ShareOf(const TrainingPlan& plan, int rank) {
  const Optimizer& optimizer = plan.optimizer(rank);
  ShareSizes sizes{.optimizer_bytes =
                       static_cast<double>(optimizer.state_elements()) * sizeof(float)};
  for (const Parameter& parameter : plan.parameters().all()) {
    if (!parameter.trainable) continue;
    for (const ElementRange& part : optimizer.HeldOf(parameter)) {
      sizes.updated += part.size();
      sizes.parameters.push_back(
          part.size() == parameter.shape.size()
              ? parameter.name
              : fmt::format("{}[{}, {})", parameter.name, part.begin, part.end));
    }
  }
  return sizes;
}

}  // namespace

std::vector<LiveBlock> AliveAtPeak(const TrainingPlan& plan) {
  const std::shared_ptr<const Program> program = plan.Training();
  const MemoryPlan memory = PlanOn(plan.backend(), *program, plan.keeps_rounded());
  std::vector<Allocation> alive;
  for (const Allocation& allocation : memory.allocations) {
    if (allocation.first <= memory.peak_instruction && memory.peak_instruction <= allocation.last)
      alive.push_back(allocation);
  }
  std::ranges::sort(alive, std::greater<>(), &Allocation::bytes);
  std::vector<LiveBlock> list;
  for (const Allocation& allocation : alive) {
    const std::string type =
        allocation.value ? ToString(program->info(allocation.value).type) : "workspace";
    list.push_back({allocation.bytes, type, MadeBy(*program, allocation)});
  }
  return list;
}

std::vector<ShareSizes> SharesOf(const TrainingPlan& plan) {
  std::vector<ShareSizes> list;
  for (int rank = 0; rank < plan.ranks(); ++rank) list.push_back(ShareOf(plan, rank));
  return list;
}

}  // namespace syntra
