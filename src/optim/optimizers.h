// SPDX-License-Identifier: Apache-2.0
// The makers that MakeOptimizer calls. To add an optimizer, write a file like adamw.cc, and add a
// line here and in optimizers.cc.
#pragma once

#include "optim/optimizer.h"

namespace syntra {

std::unique_ptr<Optimizer> MakeAdamW(const OptimizerConfig&, const ParameterStore&,
                                     std::span<const ElementRange>);
std::unique_ptr<Optimizer> MakeAdafactor(const OptimizerConfig&, const ParameterStore&,
                                         std::span<const ElementRange>);

}  // namespace syntra
