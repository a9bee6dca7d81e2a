// SPDX-License-Identifier: Apache-2.0
// How ranks share an update: each updates a part of the parameters and keeps the optimizer's state
// of that part alone (ZeRO, stage 1; Rajbhandari et al. 2020).
#pragma once

#include "configs/schema/config.pb.h"
#include "core/parameters.h"
#include "dist/shares.h"

namespace syntra {

// What an optimizer's update cannot be cut below: an element, or a tensor where the update of each
// element follows from all of them.
enum class UpdateGrain { kElement, kTensor };
UpdateGrain GrainOf(const OptimizerConfig& config);

// Shares of the arena of parameters for so many ranks: neighbours in the order of the arena, so
// that gradients that are ready together have the same owner. By element they are even; by tensor
// the largest is as small as it can be.
Shares UpdateShares(const ParameterStore& parameters, UpdateGrain grain, int ranks);

}  // namespace syntra
