// SPDX-License-Identifier: Apache-2.0
#include "program/collectives.h"

#include <fmt/format.h>

#include "base/error.h"

namespace syntra {

std::vector<std::string> CollectivesOf(const Program& program) {
  std::vector<std::string> lines;
  for (const Instruction& instruction : program.instructions) {
    if (!instruction.op->collective) continue;
    const OpCall& call = instruction.call;
    lines.push_back(fmt::format("{} {} {{{}}}", instruction.op->name, ToString(call.inputs[0]),
                                call.attributes.ToString()));
  }
  return lines;
}

void CheckCollectives(const Program& program, RankGroup* ranks) {
  if (ranks) ranks->CheckAlike(CollectivesOf(program));
  const int size = ranks ? ranks->size() : 1;
  for (const Instruction& instruction : program.instructions) {
    if (!instruction.op->collective) continue;
    const int64_t wanted = instruction.call.attributes.Int("ranks");
    SYNTRA_CHECK(wanted == size, "{} over {} ranks in a program that {} run", instruction.op->name,
                 wanted, size);
  }
}

}  // namespace syntra
