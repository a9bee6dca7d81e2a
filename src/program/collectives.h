// SPDX-License-Identifier: Apache-2.0
// The instructions of a program in which ranks exchange values. They are made in the order of the
// program, so all ranks that run it together must have the same ones in the same order.
#pragma once

#include <string>
#include <vector>

#include "kernels/rank_group.h"
#include "program/program.h"

namespace syntra {

// "all_reduce f32[2, 3] {ranks=4}" for each, in their order.
std::vector<std::string> CollectivesOf(const Program& program);

// Collective. Throws if the program's collectives are for a different number of ranks, and on all
// ranks if one rank has other collectives. `ranks` may be null: this rank is alone.
void CheckCollectives(const Program& program, RankGroup* ranks);

}  // namespace syntra
